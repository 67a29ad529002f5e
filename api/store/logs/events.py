"""The events of runs, as readers see them. Called by the event stream, run logs and the pods' routes.

A replay is exactly: run.started (id 1, from the claim), what the run said, and one terminal event (from the
row, the last id + 1). A run that was never claimed has its terminal event alone, with id 1.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select

from api.store.errors import Missing
from api.store.logs.event_logs import EventLogs, Held
from api.store.logs.journal import Record
from api.store.sql.database import Database
from api.store.sql.notifier import Signals
from api.store.sql.schema import claims, runs
from crds import names
from crds.times import format_time

HEADS = 1000


@dataclass(frozen=True)
class Event:
    """One event. `data` holds `run_id` and `timestamp` already; `id` counts from 1 without gaps."""

    id: int
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class EventPage:
    """Events after a position. `ended`: nothing will ever follow these. `mark` is for `Events.wait`.

    `total` is the greatest id there is now.
    """

    events: tuple[Event, ...]
    ended: bool
    mark: int
    total: int


@dataclass(frozen=True)
class Head:
    """What the index knows of a run's events: its first one, if it was claimed, and its last, if it ended."""

    started: Event | None
    terminal: Event | None


def replay(head: Head, records: list[Record], after: int, limit: int) -> list[Event]:
    """The events with ids above `after`, at most `limit`; `records` begin after `said_after(after)`."""
    found: list[Event] = []
    if head.started:
        if after == 0:
            found.append(head.started)
        first = max(after, 1) + 1
        found.extend(Event(first + index, record["t"], record["d"]) for index, record in enumerate(records))
    reached = found[-1].id if found else after
    if head.terminal and reached == head.terminal.id - 1:
        found.append(head.terminal)
    return found[:limit]


def said_after(after: int) -> int:
    """How many records precede the event that follows id `after`: record n is event n + 1."""
    return max(after - 1, 0)


class Events:
    """The events of all runs of one namespace."""

    def __init__(self, database: Database, namespace: str, logs: EventLogs, signals: Signals) -> None:
        self._database = database
        self._namespace = namespace
        self._heads: OrderedDict[str, Head] = OrderedDict()
        self._logs = logs
        self._signals = signals

    def hold(self, run: str) -> AbstractAsyncContextManager[Held]:
        """The run's log, to write to: nobody else holds it meanwhile. Raises StoreUnavailable."""
        return self._logs.hold(run)

    async def seq(self, run: str) -> int:
        """The greatest of the runner's own numbers that is stored."""
        return await self._logs.seq(run)

    async def read(self, run: str, after: int, limit: int) -> EventPage:
        """Up to `limit` events with ids above `after`. Raises Missing for an unknown run."""
        mark = self._signals.mark
        # The head first: where it tells the end, the log is complete; where not, the end is told next time.
        head = await self._head(run, mark)
        if head.started is None:
            total = 0
            records: list[Record] = []
        else:
            told = head.terminal.id - 2 if head.terminal else None
            said, records = await self._logs.read(run, said_after(after), limit, told)
            total = 1 + said
        events = replay(head, records, after, limit)
        if head.terminal:
            total = head.terminal.id
        last = events[-1].id if events else after
        return EventPage(tuple(events), head.terminal is not None and last >= head.terminal.id, mark, total)

    async def tokens(self, run: str) -> tuple[int, int]:
        """The prompt and completion tokens that a run told of."""
        return await self._logs.tokens(run)

    def listen(self, run: str, mark: int, heard: Callable[[], None]) -> None:
        """Calls `heard` whenever something happened to the run, at once if it did since `mark`.

        One listens to a run at a time (`api.streaming.fanout`), until `unlisten`.
        """
        self._signals.listen(run, heard)
        if self._signals.since(run, mark):
            heard()

    def unlisten(self, run: str) -> None:
        """Ends what `listen` began."""
        self._signals.unlisten(run)

    async def wait(self, run: str, mark: int, timeout: float) -> None:
        """Returns at once if something happened to the run since `mark`, else when it does or after
        `timeout` seconds.
        """
        await self._signals.wait(run, mark, timeout)

    async def _head(self, run: str, mark: int) -> Head:
        known = self._heads.get(run)
        if known:
            self._heads.move_to_end(run)
            return known
        query = (
            select(runs.c.terminal, runs.c.terminal_id, claims.c.granted_at, claims.c.answer)
            .outerjoin(claims, (claims.c.namespace == runs.c.namespace) & (claims.c.run == runs.c.name))
            .where(runs.c.namespace == self._namespace, runs.c.name == run, runs.c.hidden.is_(False))
        )
        async with self._database.read() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise Missing(f"there is no run {names.id_of(run)}", "run")
        head = Head(
            started=None if row.granted_at is None else started(run, row.granted_at, row.answer),
            terminal=None
            if row.terminal is None
            else Event(row.terminal_id, row.terminal["type"], row.terminal["data"]),
        )
        # What changed while we read is read again by the next one; what another replica may change, too.
        if (self._signals.alone or head.terminal) and not self._signals.since(f"head/{run}", mark):
            self._heads[run] = head
            if len(self._heads) > HEADS:
                self._heads.popitem(last=False)
        return head

    def told(self, run: str) -> None:
        """Something was appended to the run's log."""
        self._signals.ring(run)

    def turned(self, run: str) -> None:
        """The run was claimed, has ended, or is no longer shown."""
        self._heads.pop(run, None)
        self._signals.ring(f"head/{run}")
        self._signals.ring(run)


def started(run: str, granted_at: datetime, answer: Mapping[str, Any]) -> Event:
    """The first event of a claimed run."""
    data = {
        "run_id": names.id_of(run),
        "timestamp": format_time(granted_at),
        "deployment_id": answer.get("deployment_id"),
    }
    return Event(1, "run.started", data)
