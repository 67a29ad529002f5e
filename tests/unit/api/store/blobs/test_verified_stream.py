"""Tests of stall detection: a slow transfer continues, a stalled one times out."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from api.store.blobs.verified_stream import VerifiedStream, wait_for_transfer


async def slow_chunks(pause: float) -> AsyncIterator[bytes]:
    for _ in range(3):
        await asyncio.sleep(pause)
        yield b"x"


async def transfer(stream: VerifiedStream, pause: float) -> int:
    sent = 0
    async for chunk in stream.verified_chunks():
        await asyncio.sleep(pause)
        sent += len(chunk)
    await asyncio.sleep(pause)
    return sent


async def test_slow_transfer_is_not_stalled() -> None:
    stream = VerifiedStream(slow_chunks(0.3), 3, None)
    await wait_for_transfer(transfer(stream, 0.0), stream, 0.2)
    stream = VerifiedStream(slow_chunks(0.0), 3, None)
    await wait_for_transfer(transfer(stream, 0.1), stream, 30)
    assert (stream.received_bytes, stream.idle_seconds(0.0) <= 0.0) == (3, True)


async def test_stalled_store_times_out() -> None:
    stream = VerifiedStream(slow_chunks(0.0), 3, None)
    stalled = asyncio.ensure_future(transfer(stream, 60))
    with pytest.raises(TimeoutError, match="took no bytes"):
        await wait_for_transfer(stalled, stream, 0.1)
    await asyncio.sleep(0)
    assert stalled.cancelled()
