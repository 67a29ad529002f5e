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
from api.store.locks import NamedLocks
from api.store.shared_tasks import SharedTasks

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
        self._opening: SharedTasks[Opened] = SharedTasks()
        self._locks = NamedLocks()

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[Opened]:
        """Open the journal for writing, exclusively. Raises StoreUnavailable."""
        async with self._locks.hold(name, LOCK_TIMEOUT_SECONDS, f"the log of {name}"):
            try:
                yield await self.open(name)
            except (StoreUnavailable, asyncio.CancelledError):
                # A failed or canceled write may have left bytes on disk: opening it again detects them.
                self._open_journals.pop(name, None)
                raise

    async def open(self, name: str) -> Opened:
        """Open the journal for reading."""
        journal = self._open_journals.get(name)
        if journal is None:
            return await self._opening.run(name, lambda: self._open(name))
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
