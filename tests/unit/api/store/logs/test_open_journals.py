"""Tests of open journals: concurrent callers share one opening, since opening cuts unfinished writes."""

import asyncio
import threading
from pathlib import Path

import pytest

from api.store.errors import StoreUnavailable
from api.store.logs.open_journals import OpenJournals, run_in_thread


class SlowJournal:
    """A journal that is slow to open: `gate` lets the openings end."""

    opened = 0
    broken = False
    gate = threading.Event()

    def __init__(self, directory: Path) -> None:
        SlowJournal.opened += 1
        SlowJournal.gate.wait(60)
        if SlowJournal.broken:
            raise OSError("the disk is away")


@pytest.fixture
def journals(tmp_path: Path) -> OpenJournals[SlowJournal]:
    SlowJournal.opened, SlowJournal.broken, SlowJournal.gate = 0, False, threading.Event()
    SlowJournal.gate.set()
    return OpenJournals(tmp_path, SlowJournal)


async def test_readers_and_writer_share_one_opening(journals: OpenJournals[SlowJournal]) -> None:
    async def write() -> SlowJournal:
        async with journals.lock("run-a") as book:
            return book

    SlowJournal.gate.clear()
    opening = asyncio.gather(*(journals.open("run-a") for _ in range(20)), write())
    await asyncio.sleep(0.05)
    SlowJournal.gate.set()
    results = await opening
    assert (SlowJournal.opened, len(set(map(id, results)))) == (1, 1)
    assert await journals.open("run-a") is results[0]


async def test_canceled_reader_keeps_the_opening(journals: OpenJournals[SlowJournal]) -> None:
    SlowJournal.gate.clear()
    first, second = (asyncio.create_task(journals.open("run-a")) for _ in range(2))
    await asyncio.sleep(0.01)
    first.cancel()
    SlowJournal.gate.set()
    assert isinstance(await second, SlowJournal)
    assert SlowJournal.opened == 1


async def test_failed_opening_is_retried(journals: OpenJournals[SlowJournal]) -> None:
    SlowJournal.broken = True
    with pytest.raises(StoreUnavailable):
        await journals.open("run-a")
    SlowJournal.broken = False
    assert isinstance(await journals.open("run-a"), SlowJournal)


async def test_canceled_writer_keeps_the_lock(
    journals: OpenJournals[SlowJournal],
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
    # Opening it again detects how much the other call has written.
    assert await waiting is not book
    with pytest.raises(asyncio.CancelledError):
        await writing
