"""A journal is opened once, whoever asks for it at the same time: opening one cuts what is being written."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from api.store.errors import StoreUnavailable
from api.store.logs.open_journals import OpenJournals, run_in_thread


class Slow:
    """A journal that takes a while to open."""

    opened = 0
    broken = False

    def __init__(self, place: Path) -> None:
        Slow.opened += 1
        time.sleep(0.05)
        if Slow.broken:
            raise OSError("the disk is away")


@pytest.fixture
def journals(tmp_path: Path) -> OpenJournals[Slow]:
    Slow.opened, Slow.broken = 0, False
    return OpenJournals(tmp_path, Slow)


async def test_readers_and_the_writer_share_one_opening(journals: OpenJournals[Slow]) -> None:
    async def write() -> Slow:
        async with journals.lock("run-a") as book:
            return book

    found = await asyncio.gather(*(journals.open("run-a") for _ in range(20)), write())
    assert (Slow.opened, len(set(map(id, found)))) == (1, 1)
    assert await journals.open("run-a") is found[0]


async def test_who_stops_waiting_takes_the_opening_from_nobody(journals: OpenJournals[Slow]) -> None:
    first = asyncio.create_task(journals.open("run-a"))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(journals.open("run-a"))
    await asyncio.sleep(0.01)
    first.cancel()
    assert isinstance(await second, Slow)
    assert Slow.opened == 1


async def test_what_could_not_be_opened_is_tried_again(journals: OpenJournals[Slow]) -> None:
    Slow.broken = True
    with pytest.raises(StoreUnavailable):
        await journals.open("run-a")
    Slow.broken = False
    assert isinstance(await journals.open("run-a"), Slow)


async def test_who_gives_up_while_a_thread_writes_lets_nobody_else_write(
    journals: OpenJournals[Slow],
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        ended.wait(60)

    async def write() -> None:
        async with journals.lock("run-a"):
            await run_in_thread(work)

    book = await journals.open("run-a")
    writing = asyncio.create_task(write())
    await asyncio.to_thread(begun.wait, 60)
    writing.cancel()
    waiting = asyncio.create_task(journals.lock("run-a").__aenter__())
    done, _ = await asyncio.wait((waiting,), timeout=0.05)
    assert not done
    ended.set()
    # How far the other one came is found out on the disk.
    assert await waiting is not book
    with pytest.raises(asyncio.CancelledError):
        await writing
