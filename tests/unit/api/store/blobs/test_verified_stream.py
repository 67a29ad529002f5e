"""A transfer goes on as long as it moves; one that stands is given up, whoever else is slow."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from api.store.blobs.verified_stream import VerifiedStream, wait_for_transfer


async def three(pause: float) -> AsyncIterator[bytes]:
    for _ in range(3):
        await asyncio.sleep(pause)
        yield b"x"


async def take(check: VerifiedStream, pause: float) -> int:
    taken = 0
    async for chunk in check.verified_chunks():
        await asyncio.sleep(pause)
        taken += len(chunk)
    await asyncio.sleep(pause)
    return taken


async def test_a_slow_sender_is_waited_for_and_so_is_a_store_that_moves() -> None:
    check = VerifiedStream(three(0.3), 3, None)
    await wait_for_transfer(take(check, 0.0), check, 0.2)
    check = VerifiedStream(three(0.0), 3, None)
    await wait_for_transfer(take(check, 0.1), check, 30)
    assert (check.seen, check.idle(0.0) <= 0.0) == (3, True)


async def test_a_store_that_stands_is_given_up() -> None:
    check = VerifiedStream(three(0.0), 3, None)
    stands = asyncio.ensure_future(take(check, 60))
    with pytest.raises(TimeoutError, match="took no bytes"):
        await wait_for_transfer(stands, check, 0.1)
    await asyncio.sleep(0)
    assert stands.cancelled()
