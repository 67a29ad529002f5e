"""Cache of open journals: one object per journal, one writer at a time, least recently used evicted first.

Called by event logs and build logs. A journal keeps no file open: evicting one only discards cached state.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Generic, TypeVar

from api.store.errors import StoreUnavailable

Opened = TypeVar("Opened")
MAX_OPEN_JOURNALS = 2000
"""Journals kept in memory."""
LOCK_TIMEOUT_SECONDS = 3.0
"""Wait for another writer of the same journal."""


class OpenJournals(Generic[Opened]):
    """Journals by name, each wrapped in the type of its kind (`Opened`)."""

    def __init__(self, directory: Path, open_journal: Callable[[Path], Opened]) -> None:
        self._directory = directory
        self._open_journal = open_journal
        self._open_journals: OrderedDict[str, Opened] = OrderedDict()
        self._opening: dict[str, asyncio.Task[Opened]] = {}
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[Opened]:
        """Open the journal for writing, exclusively. Raises StoreUnavailable."""
        lock, waiting = self._locks.get(name, (asyncio.Lock(), 0))
        self._locks[name] = (lock, waiting + 1)
        try:
            try:
                async with asyncio.timeout(LOCK_TIMEOUT_SECONDS):
                    await lock.acquire()
            except TimeoutError as error:
                raise StoreUnavailable(f"the log of {name} is busy; try again") from error
            try:
                yield await self.open(name)
            except (StoreUnavailable, asyncio.CancelledError):
                # A failed or canceled write may have left bytes on disk: opening it again detects them.
                self._open_journals.pop(name, None)
                raise
            finally:
                lock.release()
        finally:
            lock, waiting = self._locks[name]
            if waiting == 1:
                del self._locks[name]
            else:
                self._locks[name] = (lock, waiting - 1)

    async def open(self, name: str) -> Opened:
        """Open the journal for reading."""
        journal = self._open_journals.get(name)
        if journal is None:
            task = self._opening.get(name)
            if task is None:
                task = self._opening[name] = asyncio.create_task(self._open(name))
                task.add_done_callback(lambda _: self._opening.pop(name, None))
            return await asyncio.shield(task)
        self._open_journals.move_to_end(name)
        return journal

    async def _open(self, name: str) -> Opened:
        """Open a journal, once at a time: opening cuts a torn end, which another opener may be writing."""
        journal = self._open_journals[name] = await run_in_thread(
            lambda: self._open_journal(self.directory(name))
        )
        while len(self._open_journals) > MAX_OPEN_JOURNALS:
            oldest = next(iter(self._open_journals))
            if oldest in self._locks:
                break
            del self._open_journals[oldest]
        return journal

    async def evict(self, name: str) -> None:
        """Evict the journal's object from the cache."""
        self._open_journals.pop(name, None)

    def directory(self, name: str) -> Path:
        """Return the journal's directory. Names end randomly: their last two letters spread them."""
        return self._directory / name[-2:] / name


async def run_in_thread(work: Callable[[], Opened]) -> Opened:
    """Run blocking disk work in a thread; turn OSError into StoreUnavailable.

    A canceled caller still waits for its end: no other writer may start while the thread writes.
    """
    future = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait((future,))
        if not future.cancelled():
            future.exception()
        raise
    except OSError as error:
        raise StoreUnavailable(f"the disk cannot answer: {error}") from error
