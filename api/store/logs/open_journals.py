"""The open journals of a process: one object per journal, one writer at a time, the least used closed.

Called by event logs and build logs. A journal holds no open file, so closing one
means forgetting what was learned when it was opened.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Generic, TypeVar

from api.store.errors import StoreUnavailable

Book = TypeVar("Book")
OPEN = 2000
"""Journals remembered at once."""
PATIENCE = 3.0
"""Seconds to wait for another one who writes to the same journal."""


class Shelf(Generic[Book]):
    """Journals by name, each wrapped in what its kind adds to it (`Book`)."""

    def __init__(self, directory: Path, open_book: Callable[[Path], Book]) -> None:
        self._directory = directory
        self._open_book = open_book
        self._books: OrderedDict[str, Book] = OrderedDict()
        self._opening: dict[str, asyncio.Task[Book]] = {}
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[Book]:
        """The journal, to write to: nobody else holds it meanwhile. Raises StoreUnavailable."""
        lock, waiting = self._turns.get(name, (asyncio.Lock(), 0))
        self._turns[name] = (lock, waiting + 1)
        try:
            try:
                async with asyncio.timeout(PATIENCE):
                    await lock.acquire()
            except TimeoutError as error:
                raise StoreUnavailable(f"the log of {name} is busy; try again") from error
            try:
                yield await self.open(name)
            except (StoreUnavailable, asyncio.CancelledError):
                # What a write that failed or was given up left on the disk is found out by opening it again.
                self._books.pop(name, None)
                raise
            finally:
                lock.release()
        finally:
            lock, waiting = self._turns[name]
            if waiting == 1:
                del self._turns[name]
            else:
                self._turns[name] = (lock, waiting - 1)

    async def open(self, name: str) -> Book:
        """The journal, to read from."""
        book = self._books.get(name)
        if book is None:
            task = self._opening.get(name)
            if task is None:
                task = self._opening[name] = asyncio.create_task(self._open(name))
                task.add_done_callback(lambda _: self._opening.pop(name, None))
            return await asyncio.shield(task)
        self._books.move_to_end(name)
        return book

    async def _open(self, name: str) -> Book:
        """Once at a time: opening a journal cuts a torn end, which may be what is just being written."""
        book = self._books[name] = await off(lambda: self._open_book(self.place(name)))
        while len(self._books) > OPEN:
            oldest = next(iter(self._books))
            if oldest in self._turns:
                break
            del self._books[oldest]
        return book

    async def drop(self, name: str) -> None:
        """Forgets the journal's object."""
        self._books.pop(name, None)

    def place(self, name: str) -> Path:
        """The journal's directory. Names end randomly: their last two letters spread them."""
        return self._directory / name[-2:] / name


async def off(work: Callable[[], Book]) -> Book:
    """Runs blocking disk work in a thread; an error of the disk becomes StoreUnavailable.

    Who gives up waits for its end all the same: nobody else may write while a thread still does.
    """
    working = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait((working,))
        if not working.cancelled():
            working.exception()
        raise
    except OSError as error:
        raise StoreUnavailable(f"the disk cannot answer: {error}") from error
