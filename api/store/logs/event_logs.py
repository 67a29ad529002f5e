"""Event logs of runs, in files or in PostgreSQL. Called by `api.store.logs.events`.

A run's log has one writer at a time in the whole installation: the one that appends, or that ends the run.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.errors import StoreUnavailable
from api.store.logs.event_budget import NO_BUDGET, EventBudget
from api.store.logs.event_log import EventLog, NewEvent
from api.store.logs.journal import JournalDamaged, record
from api.store.logs.open_journals import OpenJournals, run_in_thread
from api.store.logs.repair import repair_files
from api.store.logs.stored_event import StoredEvent
from api.store.token_counts import TokenCounts

UNBOUNDED_SEQ = 1 << 62
"""Above every number: nothing that a full log lacks is missing."""
logger = structlog.get_logger()
Result = TypeVar("Result")


class EventLogWriter(ABC):
    """Exclusive write access to a run's log. Records are durable once `open_writer` exits."""

    @property
    @abstractmethod
    def seq(self) -> int:
        """The greatest of the runner's numbers in the log."""

    @property
    @abstractmethod
    def full(self) -> bool:
        """Whether the log reached its budget."""

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """The bytes of all records."""

    @abstractmethod
    async def append(
        self, events: Sequence[NewEvent], budget: EventBudget = NO_BUDGET, text_bytes: int = 0
    ) -> int:
        """Append the new events that follow without a gap; return the greatest number stored.

        `text_bytes`: the most bytes that the events have. A log that reached its budget stores no more events
        and returns the last number. Raises StoreUnavailable.
        """

    @abstractmethod
    async def append_artifact(self, version: int, data: Mapping[str, Any]) -> None:
        """Append the event of an artifact's version, unless the log contains it or is full.

        Raises StoreUnavailable.
        """

    @abstractmethod
    async def seal(self, connection: AsyncConnection) -> int:
        """Return the final number of records, once this transaction of the index commits."""


class EventLogs(ABC):
    """The event logs of one namespace."""

    @abstractmethod
    def open_writer(self, run: str) -> AbstractAsyncContextManager[EventLogWriter]:
        """Open a run's log for writing. Raises StoreUnavailable."""

    @abstractmethod
    async def seq(self, run: str) -> int:
        """Return the greatest of the runner's numbers in a run's log; UNBOUNDED_SEQ if the log is full."""

    @abstractmethod
    async def read(
        self, run: str, after: int, limit: int, record_count: int | None
    ) -> tuple[int, list[StoredEvent]]:
        """Return the number of records, and the events of up to `limit` of them after the first `after` ones.

        `record_count`: the number of records, if it is known because the run has ended.
        """

    @abstractmethod
    async def lines(self, run: str, after: int, limit: int) -> list[bytes]:
        """Read a sealed log: whole JSON lines, as an archive stores them."""

    @abstractmethod
    async def clear(self, run: str) -> bool:
        """Delete a part of a sealed log; return whether nothing is left. Idempotent."""

    @abstractmethod
    async def delete(self, run: str) -> None:
        """Delete what remains after `clear`: the entry of the log itself."""

    @abstractmethod
    async def tokens(self, run: str) -> TokenCounts:
        """Return the tokens of all `usage` events."""


class _FileEventLogWriter(EventLogWriter):
    def __init__(self, log: EventLog) -> None:
        self._log = log

    @property
    def seq(self) -> int:
        return self._log.seq

    @property
    def full(self) -> bool:
        return self._log.full

    @property
    def size_bytes(self) -> int:
        return self._log.size_bytes

    async def append(
        self, events: Sequence[NewEvent], budget: EventBudget = NO_BUDGET, text_bytes: int = 0
    ) -> int:
        return await run_in_thread(lambda: self._log.append(events, budget, text_bytes))

    async def append_artifact(self, version: int, data: Mapping[str, Any]) -> None:
        await run_in_thread(lambda: self._log.append_artifact(version, data))

    async def seal(self, connection: AsyncConnection) -> int:
        # This process owns the directory: holding the lock until the commit is enough.
        return self._log.last


class FileEventLogs(EventLogs):
    """Event logs as segment files in one directory, owned by this process."""

    def __init__(self, directory: Path) -> None:
        self._journals = OpenJournals(directory, EventLog)

    @asynccontextmanager
    async def open_writer(self, run: str) -> AsyncIterator[EventLogWriter]:
        """Implement `EventLogs.open_writer`."""
        async with self._journals.lock(run) as log:
            yield _FileEventLogWriter(log)

    async def seq(self, run: str) -> int:
        """Implement `EventLogs.seq`."""
        log = await self._journals.open(run)
        return UNBOUNDED_SEQ if log.full else log.seq

    async def read(
        self, run: str, after: int, limit: int, record_count: int | None
    ) -> tuple[int, list[StoredEvent]]:
        """Implement `EventLogs.read`."""
        log = await self._journals.open(run)
        last = log.last if record_count is None else record_count
        count = min(limit, last - after)
        if count <= 0:
            return last, []
        recent = log.recent(after, count)
        if recent is not None:
            return last, [StoredEvent.split(line) for line in recent]
        return last, await self._with_repair(
            run, lambda log: [StoredEvent.check(line) for line in log.lines(after, count)]
        )

    async def lines(self, run: str, after: int, limit: int) -> list[bytes]:
        """Implement `EventLogs.lines`."""
        return await self._with_repair(run, lambda log: check_records(log.lines(after, limit)))

    async def clear(self, run: str) -> bool:
        """Implement `EventLogs.clear`."""
        async with self._journals.lock(run) as log:
            await run_in_thread(log.remove)
            await self._journals.evict(run)
        return True

    async def delete(self, run: str) -> None:
        """Implement `EventLogs.delete`: `clear` has deleted everything."""

    async def tokens(self, run: str) -> TokenCounts:
        """Implement `EventLogs.tokens`."""
        return await self._with_repair(run, lambda log: log.tokens())

    async def _with_repair(self, run: str, work: Callable[[EventLog], Result]) -> Result:
        """Return the result of `work`; if the log is damaged, repair it and retry once."""
        log = await self._journals.open(run)
        try:
            return await run_in_thread(lambda: work(log))
        except JournalDamaged:
            async with self._journals.lock(run):
                lost = await run_in_thread(lambda: repair_files(self._journals.directory(run)))
                await self._journals.evict(run)
        logger.error("a damaged event log was repaired", run=run, lost=lost)
        repaired = await self._journals.open(run)
        try:
            return await run_in_thread(lambda: work(repaired))
        except JournalDamaged as error:
            raise StoreUnavailable(f"the log of {run} is damaged") from error


def check_records(lines: list[bytes]) -> list[bytes]:
    """Return the lines, after checking that all are records. Raises JournalDamaged."""
    for line in lines:
        record(line)
    return lines
