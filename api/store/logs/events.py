"""Events of runs as readers see them. Called by the event stream, run logs and the pods' routes.

A replay consists of run.started (id 1, from the claim), the runner's events, and one terminal event (from the
row, the last id + 1). A run that was never claimed has only its terminal event, with id 1.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select

from api.store.errors import Missing
from api.store.logs.event_logs import EventLogs, EventLogWriter
from api.store.logs.stored_event import StoredEvent
from api.store.sql.database import Database
from api.store.sql.notifier import Notifier
from api.store.sql.schema import claims, runs
from api.store.token_counts import TokenCounts
from crds import names
from crds.times import format_time

MAX_CACHED_BOUNDS = 1000


@dataclass(frozen=True)
class RunEvent:
    """One event. `id` counts from 1 without gaps."""

    id: int
    stored: StoredEvent

    @property
    def type(self) -> str:
        """The event's type."""
        return self.stored.type

    @property
    def data(self) -> Mapping[str, Any]:
        """The event's data, which includes `run_id` and `timestamp`."""
        return self.stored.data


@dataclass(frozen=True)
class EventPage:
    """Events after a position. `ended`: no more events follow. `mark` is for `Events.wait`.

    `total` is the greatest current id.
    """

    events: tuple[RunEvent, ...]
    ended: bool
    mark: int
    total: int


@dataclass(frozen=True)
class EventBounds:
    """The events that the index stores: the first one, if the run was claimed; the last one, if it ended."""

    started: RunEvent | None
    terminal: RunEvent | None


def replay(bounds: EventBounds, logged: list[StoredEvent], after: int, limit: int) -> list[RunEvent]:
    """Return at most `limit` events with ids above `after`; `logged` start after `records_before(after)`."""
    events: list[RunEvent] = []
    if bounds.started:
        if after == 0:
            events.append(bounds.started)
        first = max(after, 1) + 1
        events.extend(RunEvent(identifier, event) for identifier, event in enumerate(logged, first))
    reached = events[-1].id if events else after
    if bounds.terminal and reached == bounds.terminal.id - 1:
        events.append(bounds.terminal)
    return events[:limit]


def records_before(after: int) -> int:
    """Return how many records precede the event that follows id `after`: record n is event n + 1."""
    return max(after - 1, 0)


class Events:
    """The events of all runs of one namespace."""

    def __init__(self, database: Database, namespace: str, logs: EventLogs, notifier: Notifier) -> None:
        self._database = database
        self._namespace = namespace
        self._bounds: OrderedDict[str, EventBounds] = OrderedDict()
        self._logs = logs
        self._notifier = notifier

    def open_writer(self, run: str) -> AbstractAsyncContextManager[EventLogWriter]:
        """Open a run's log for writing, exclusively. Raises StoreUnavailable."""
        return self._logs.open_writer(run)

    async def seq(self, run: str) -> int:
        """Return the greatest of the runner's numbers that is stored."""
        return await self._logs.seq(run)

    async def read(self, run: str, after: int, limit: int) -> EventPage:
        """Return up to `limit` events with ids above `after`. Raises Missing for an unknown run."""
        mark = self._notifier.mark
        # Bounds first: if they include the end, the log is complete; if not, the next read returns the end.
        bounds = await self._read_bounds(run, mark)
        if bounds.started is None:
            total = 0
            logged: list[StoredEvent] = []
        else:
            final_count = bounds.terminal.id - 2 if bounds.terminal else None
            record_count, logged = await self._logs.read(run, records_before(after), limit, final_count)
            total = 1 + record_count
        events = replay(bounds, logged, after, limit)
        if bounds.terminal:
            total = bounds.terminal.id
        last = events[-1].id if events else after
        return EventPage(
            tuple(events), bounds.terminal is not None and last >= bounds.terminal.id, mark, total
        )

    async def tokens(self, run: str) -> TokenCounts:
        """Return the tokens that a run reported."""
        return await self._logs.tokens(run)

    def listen(self, run: str, mark: int, callback: Callable[[], None]) -> None:
        """Call `callback` at every change of the run, and immediately if it has changed since `mark`.

        A run has one listener at a time (`api.streaming.fanout`), until `unlisten`.
        """
        self._notifier.listen(run, callback)
        if self._notifier.changed_since(run, mark):
            callback()

    def unlisten(self, run: str) -> None:
        """Undo `listen`."""
        self._notifier.unlisten(run)

    async def wait(self, run: str, mark: int, timeout: float) -> None:
        """Return as soon as the run has changed since `mark`, or after `timeout` seconds."""
        await self._notifier.wait(run, mark, timeout)

    @property
    def mark(self) -> int:
        """The current position; take it before reading a run and pass it to `wait_state`."""
        return self._notifier.mark

    async def wait_state(self, run: str, mark: int, timeout: float) -> None:
        """Return as soon as the run's state has changed since `mark`, or after `timeout` seconds."""
        await self._notifier.wait(_state_key(run), mark, timeout)

    async def _read_bounds(self, run: str, mark: int) -> EventBounds:
        cached = self._bounds.get(run)
        if cached:
            self._bounds.move_to_end(run)
            return cached
        query = (
            select(runs.c.terminal, runs.c.terminal_id, claims.c.granted_at, claims.c.answer)
            .outerjoin(claims, (claims.c.namespace == runs.c.namespace) & (claims.c.run == runs.c.name))
            .where(runs.c.namespace == self._namespace, runs.c.name == run, runs.c.hidden.is_(False))
        )
        async with self._database.read() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise Missing(f"run {names.id_of(run)} not found")
        bounds = EventBounds(
            started=None if row.granted_at is None else started(run, row.granted_at, row.answer),
            terminal=None
            if row.terminal is None
            else RunEvent(row.terminal_id, StoredEvent(row.terminal["type"], row.terminal["data"])),
        )
        # Not cached if it changed during the read, or if another replica may change it.
        if (self._notifier.single_process or bounds.terminal) and not self._notifier.changed_since(
            _state_key(run), mark
        ):
            self._bounds[run] = bounds
            if len(self._bounds) > MAX_CACHED_BOUNDS:
                self._bounds.popitem(last=False)
        return bounds

    def notify_appended(self, run: str) -> None:
        """Notify readers that the run's log has new records."""
        self._notifier.notify(run)

    def notify_state_changed(self, run: str) -> None:
        """Notify readers that the run was claimed, ended, or is no longer shown."""
        self._bounds.pop(run, None)
        self._notifier.notify(_state_key(run))
        self._notifier.notify(run)


def _state_key(run: str) -> str:
    return f"head/{run}"


def started(run: str, granted_at: datetime, answer: Mapping[str, Any]) -> RunEvent:
    """Return the first event of a claimed run."""
    data = {
        "run_id": names.id_of(run),
        "timestamp": format_time(granted_at),
        "deployment_id": answer.get("deployment_id"),
    }
    return RunEvent(1, StoredEvent("run.started", data))
