"""Tests of stall detection: a slow transfer continues, a stalled one times out."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest

from api.store.blobs import verified_stream
from api.store.blobs.verified_stream import VerifiedStream, wait_for_transfer


class SlowTransfer:
    """A client and a store that each pause for some seconds of a virtual clock."""

    def __init__(self, client_pause: float, store_pause: float) -> None:
        self.now, self._client_pause, self._store_pause = 0.0, client_pause, store_pause

    async def _pause(self, seconds: float) -> None:
        self.now += seconds
        # Several checks for a stall meanwhile.
        await asyncio.sleep(0.05)

    async def chunks(self) -> AsyncIterator[bytes]:
        for _ in range(3):
            await self._pause(self._client_pause)
            yield b"x"

    async def send(self, stream: VerifiedStream) -> None:
        async for _ in stream.verified_chunks():
            await self._pause(self._store_pause)
        await self._pause(self._store_pause)


@pytest.mark.parametrize(("client_pause", "store_pause"), [(100.0, 0.0), (0.0, 20.0)])
async def test_slow_transfer_is_not_stalled(
    monkeypatch: pytest.MonkeyPatch, client_pause: float, store_pause: float
) -> None:
    slow = SlowTransfer(client_pause, store_pause)
    monkeypatch.setattr(verified_stream, "time", SimpleNamespace(monotonic=lambda: slow.now))
    monkeypatch.setattr(verified_stream, "PROGRESS_CHECK_SECONDS", 0.01)
    stream = VerifiedStream(slow.chunks(), 3, None)
    await wait_for_transfer(slow.send(stream), stream, 30)
    assert (stream.received_bytes, stream.idle_seconds(slow.now)) == (3, store_pause)


async def test_stalled_store_times_out() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"x"

    async def transfer(stream: VerifiedStream) -> None:
        async for _ in stream.verified_chunks():
            await asyncio.sleep(60)

    stream = VerifiedStream(chunks(), 1, None)
    stalled = asyncio.ensure_future(transfer(stream))
    with pytest.raises(TimeoutError, match="took no bytes"):
        await wait_for_transfer(stalled, stream, 0.1)
    await asyncio.sleep(0)
    assert stalled.cancelled()
