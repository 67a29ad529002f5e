"""The logs of runs, wherever they are kept: in files or in PostgreSQL. Called by `api.store.events`.

One holds a run's log at a time, in the whole installation: who appends, and who ends the run.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.eventlog import EventLog, Said
from api.store.journal import Record
from api.store.shelf import Shelf, off


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
        return last, await off(lambda: log.read(after, count)) if count > 0 else []

    async def tokens(self, run: str) -> tuple[int, int]:
        """As `EventLogs.tokens`."""
        log = await self._shelf.open(run)
        return await off(log.tokens)
