"""The logs of runs, wherever they are kept: in files or in PostgreSQL. Called by `api.store.logs.events`.

One holds a run's log at a time, in the whole installation: who appends, and who ends the run.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.errors import StoreUnavailable
from api.store.logs.event_log import EventLog, Said
from api.store.logs.journal import Damaged, Record, record
from api.store.logs.open_journals import Shelf, off
from api.store.logs.repair import mend_files

logger = structlog.get_logger()
Found = TypeVar("Found")


class Held(ABC):
    """A run's log, while nobody else holds it. What it takes is kept once `hold` is left."""

    @property
    @abstractmethod
    def seq(self) -> int:
        """The greatest of the runner's own numbers in it."""

    @abstractmethod
    async def say(self, events: Sequence[Said]) -> int:
        """Appends what is new and follows without a gap. Gives the greatest number stored.

        Raises StoreUnavailable.
        """

    @abstractmethod
    async def stored(self, version: int, data: Mapping[str, Any]) -> None:
        """Appends the event of an artifact's version, unless it is there. Raises StoreUnavailable."""

    @abstractmethod
    async def seal(self, connection: AsyncConnection) -> int:
        """How many records there are, and will be once this transaction of the index is committed."""


class EventLogs(ABC):
    """The logs of all runs of one namespace."""

    @abstractmethod
    def hold(self, run: str) -> AbstractAsyncContextManager[Held]:
        """The run's log, to write to. Raises StoreUnavailable."""

    @abstractmethod
    async def seq(self, run: str) -> int:
        """The greatest of the runner's own numbers in a run's log."""

    @abstractmethod
    async def read(self, run: str, after: int, limit: int, said: int | None) -> tuple[int, list[Record]]:
        """How many records there are, and up to `limit` of them after the first `after` ones.

        `said`: how many there are, where that is known because the run has ended.
        """

    @abstractmethod
    async def lines(self, run: str, after: int, limit: int) -> list[bytes]:
        """As `read`, of a log that is sealed: whole lines of JSON, as they go into an archive."""

    @abstractmethod
    async def clear(self, run: str) -> bool:
        """Deletes a piece of a log that is sealed; gives whether nothing is left. May be repeated."""

    @abstractmethod
    async def forget(self, run: str) -> None:
        """Deletes the rest, after `clear`: that there was a log."""

    @abstractmethod
    async def tokens(self, run: str) -> tuple[int, int]:
        """The prompt and completion tokens of all `usage` events."""


class _HeldFile(Held):
    def __init__(self, log: EventLog) -> None:
        self._log = log

    @property
    def seq(self) -> int:
        return self._log.seq

    async def say(self, events: Sequence[Said]) -> int:
        return await off(lambda: self._log.say(events))

    async def stored(self, version: int, data: Mapping[str, Any]) -> None:
        await off(lambda: self._log.stored(version, data))

    async def seal(self, connection: AsyncConnection) -> int:
        # Nobody else has the directory: holding it until the commit is enough.
        return self._log.last


class FileEventLogs(EventLogs):
    """Logs as segment files in one directory, which this process has for itself."""

    def __init__(self, directory: Path) -> None:
        self._shelf = Shelf(directory, EventLog)

    @asynccontextmanager
    async def hold(self, run: str) -> AsyncIterator[Held]:
        """As `EventLogs.hold`."""
        async with self._shelf.hold(run) as log:
            yield _HeldFile(log)

    async def seq(self, run: str) -> int:
        """As `EventLogs.seq`."""
        return (await self._shelf.open(run)).seq

    async def read(self, run: str, after: int, limit: int, said: int | None) -> tuple[int, list[Record]]:
        """As `EventLogs.read`."""
        log = await self._shelf.open(run)
        last = log.last if said is None else said
        count = min(limit, last - after)
        if count <= 0:
            return last, []
        recent = log.recent(after, count)
        if recent is None:
            recent = await self._mended(run, lambda log: log.read(after, count))
        return last, recent

    async def lines(self, run: str, after: int, limit: int) -> list[bytes]:
        """As `EventLogs.lines`."""
        return await self._mended(run, lambda log: whole(log.lines(after, limit)))

    async def clear(self, run: str) -> bool:
        """As `EventLogs.clear`."""
        async with self._shelf.hold(run) as log:
            await off(log.remove)
            await self._shelf.drop(run)
        return True

    async def forget(self, run: str) -> None:
        """As `EventLogs.forget`."""

    async def tokens(self, run: str) -> tuple[int, int]:
        """As `EventLogs.tokens`."""
        return await self._mended(run, lambda log: log.tokens())

    async def _mended(self, run: str, work: Callable[[EventLog], Found]) -> Found:
        """What `work` gives; where the log turns out to be damaged, once it is mended."""
        log = await self._shelf.open(run)
        try:
            return await off(lambda: work(log))
        except Damaged:
            async with self._shelf.hold(run):
                lost = await off(lambda: mend_files(self._shelf.place(run)))
                await self._shelf.drop(run)
        logger.error("a damaged event log was mended", run=run, lost=lost)
        again = await self._shelf.open(run)
        try:
            return await off(lambda: work(again))
        except Damaged as error:
            raise StoreUnavailable(f"the log of {run} is damaged") from error


def whole(lines: list[bytes]) -> list[bytes]:
    """The lines, all of which are records. Raises Damaged."""
    for line in lines:
        record(line)
    return lines
