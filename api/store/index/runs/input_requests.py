"""Table of the questions that runs ask a person, with their answers.

Called by the pods' route, by the route that answers, and by the projection of Runs. A request is open until
the first answer, its expiry, or the call that closes it; an answer never changes.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum
from typing import Any

from sqlalchemy import ColumnElement, Update, exists, func, not_, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.notifications.outbox import ProjectEvent, record_event
from api.store.index.runs.runs import ENDED, RunRow
from api.store.sql.database import Database
from api.store.sql.notifier import Notifier
from api.store.sql.schema import input_requests as table
from api.store.sql.schema import runs

MAX_OPEN_REQUESTS = 16
"""Questions of one run that wait at the same time."""
MAX_REQUESTS = 1000
"""Questions of one run."""


@dataclass(frozen=True)
class Question:
    """A question as the run asks it. `schema` and `choices`: None allows any JSON value."""

    id: str
    prompt: str
    schema: Any
    choices: Sequence[Any] | None


@dataclass(frozen=True)
class InputRequest:
    """A stored question. `answer` is `{"value": …}`, None before it and after the crew has it."""

    run: str
    id: str
    prompt: str
    schema: Any
    choices: Sequence[Any] | None
    created_at: datetime
    expires_at: datetime
    answer: Mapping[str, Any] | None
    answered_at: datetime | None
    answered_by: str | None
    refusal: str | None
    """Why the last answer in the Run object was not accepted."""
    closed: bool

    def is_open(self, now: datetime) -> bool:
        """Return whether an answer would be accepted, if the run has not ended."""
        return self.answered_at is None and not self.closed and now < self.expires_at


class AnswerState(Enum):
    """What became of an answer."""

    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    ANSWERED = "answered"
    EXPIRED = "expired"
    ENDED = "ended"


class TooManyRequests(Exception):
    """The run asks more questions than a run may; the message says which limit."""


_COLUMNS = [table.c[field.name] for field in fields(InputRequest)]


class InputRequests:
    """The questions of one namespace's runs."""

    def __init__(self, database: Database, namespace: str, notifier: Notifier) -> None:
        self._database = database
        self._namespace = namespace
        self._notifier = notifier
        self.changed = asyncio.Event()
        """Set when `unwritten` has something to return."""

    @property
    def shutting_down(self) -> bool:
        """Whether `wait` no longer waits, because the process ends."""
        return self._notifier.closed

    @property
    def mark(self) -> int:
        """The current position, for `wait`."""
        return self._notifier.mark

    async def wait(self, run: str, mark: int, timeout: float) -> None:
        """Return as soon as a question was answered or closed since `mark`, or after `timeout` seconds."""
        await self._notifier.wait(_key(run), mark, timeout)

    async def open(self, run: str, question: Question, now: datetime, expires_at: datetime) -> InputRequest:
        """Store a question once and return it. Raises TooManyRequests, StoreUnavailable."""
        async with self._database.brief_write() as connection:
            stored = await self._get(connection, run, question.id)
            if stored is not None:
                return stored
            await self._check_count(connection, run, now)
            values = {"id": question.id, "prompt": question.prompt, "schema": question.schema}
            values |= {"choices": None if question.choices is None else list(question.choices)}
            row = (
                await connection.execute(
                    table.insert()
                    .values(
                        namespace=self._namespace,
                        run=run,
                        created_at=now,
                        expires_at=expires_at,
                        closed=False,
                        written=False,
                        **values,
                    )
                    .returning(*_COLUMNS)
                )
            ).one()
            await self._record(connection, run, now)
        self.changed.set()
        return InputRequest(**row._mapping)

    async def get(self, run: str, request: str) -> InputRequest | None:
        """Return one question, or None."""
        async with self._database.brief_read() as connection:
            return await self._get(connection, run, request)

    async def unanswered(self, run: str) -> tuple[InputRequest, ...]:
        """Return the questions that have neither an answer nor been closed, the oldest first."""
        query = (
            select(*_COLUMNS)
            .where(*self._of(run), table.c.answered_at.is_(None), table.c.closed.is_(False))
            .order_by(table.c.created_at, table.c.id)
        )
        async with self._database.brief_read() as connection:
            return tuple(InputRequest(**row._mapping) for row in await connection.execute(query))

    async def open_of(self, run: RunRow, now: datetime) -> tuple[InputRequest, ...]:
        """Return the questions that can be answered, the oldest first; none unless the run is running."""
        if run.status != "running":
            return ()
        return tuple(item for item in await self.unanswered(run.name) if item.is_open(now))

    async def answer(self, run: str, request: str, value: Any, by: str, now: datetime) -> AnswerState:
        """Store the first answer to an open question; the same transaction excludes every other one."""
        live = exists().where(
            runs.c.namespace == self._namespace, runs.c.name == run, runs.c.status.not_in(ENDED)
        )
        statement = self._update(
            run, request, table.c.answered_at.is_(None), table.c.closed.is_(False), live
        ).where(table.c.expires_at > now)
        values = {"answer": {"value": value}, "answered_at": now, "answered_by": by, "written": False}
        async with self._database.brief_write() as connection:
            changed = (await connection.execute(statement.values(**values))).rowcount
            if not changed:
                return await self._refused(connection, run, request, now)
        self._notifier.notify(_key(run))
        self.changed.set()
        return AnswerState.ACCEPTED

    async def close(self, run: str, request: str) -> bool:
        """Record that the crew no longer waits, and remove the answer; return whether it had none."""
        statement = self._update(run, request, table.c.closed.is_(False)).returning(table.c.answered_at)
        async with self._database.brief_write() as connection:
            row = (
                await connection.execute(statement.values(closed=True, answer=None, written=False))
            ).one_or_none()
        self._notifier.notify(_key(run))
        self.changed.set()
        return row is not None and row.answered_at is None

    async def note_refusal(self, run: str, request: str, refusal: str) -> None:
        """Record why an answer in the Run object was not accepted."""
        unchanged = or_(table.c.refusal.is_(None), table.c.refusal != refusal)
        statement = self._update(run, request, table.c.answered_at.is_(None), unchanged)
        async with self._database.brief_write() as connection:
            await connection.execute(statement.values(refusal=refusal, written=False))
        self.changed.set()

    async def unwritten(self, limit: int) -> tuple[str, ...]:
        """Return runs whose object does not show the state of a question yet."""
        query = (
            # For the column itself, SQLite would read all questions, in the order of the primary key.
            select(table.c.run.concat(""))
            .where(table.c.namespace == self._namespace, table.c.written.is_(False))
            .distinct()
            .limit(limit)
        )
        async with self._database.read() as connection:
            return tuple((await connection.execute(query)).scalars())

    async def mark_written(self, run: str, shown: Sequence[InputRequest]) -> None:
        """Record that the object shows exactly these questions as open, or that it cannot take them.

        The object has to be written again if a question changed since it was read.
        """
        is_open = table.c.answered_at.is_(None) & table.c.closed.is_(False)
        as_read = [
            (table.c.id == item.id) & is_open & table.c.refusal.is_not_distinct_from(item.refusal)
            for item in shown
        ]
        is_shown = table.c.id.in_([item.id for item in shown])
        written = or_(not_(is_shown) & not_(is_open), *as_read)
        statement = update(table).where(*self._of(run)).values(written=written)
        # If a power failure loses this, the object is written again, which changes nothing.
        async with self._database.brief_write(durable=False) as connection:
            await connection.execute(statement)

    async def _get(self, connection: AsyncConnection, run: str, request: str) -> InputRequest | None:
        query = select(*_COLUMNS).where(*self._of(run), table.c.id == request)
        row = (await connection.execute(query)).one_or_none()
        return InputRequest(**row._mapping) if row else None

    async def _record(self, connection: AsyncConnection, run: str, now: datetime) -> None:
        query = select(runs.c.project, runs.c.project_uid).where(
            runs.c.namespace == self._namespace, runs.c.name == run
        )
        found = (await connection.execute(query)).one_or_none()
        if found is not None:
            event = ProjectEvent("run.waiting", run, now)
            await record_event(connection, self._namespace, found.project, found.project_uid, event, now)

    async def _check_count(self, connection: AsyncConnection, run: str, now: datetime) -> None:
        is_open = table.c.answered_at.is_(None) & table.c.closed.is_(False) & (table.c.expires_at > now)
        query = select(func.count(), func.count().filter(is_open)).where(*self._of(run))
        total, waiting = (await connection.execute(query)).one()
        if waiting >= MAX_OPEN_REQUESTS:
            raise TooManyRequests(f"a run can have at most {MAX_OPEN_REQUESTS} open questions at a time")
        if total >= MAX_REQUESTS:
            raise TooManyRequests(f"a run can ask at most {MAX_REQUESTS} questions")

    async def _refused(
        self, connection: AsyncConnection, run: str, request: str, now: datetime
    ) -> AnswerState:
        stored = await self._get(connection, run, request)
        if stored is None:
            return AnswerState.UNKNOWN
        if stored.answered_at is not None:
            return AnswerState.ANSWERED
        return AnswerState.EXPIRED if stored.closed or now >= stored.expires_at else AnswerState.ENDED

    def _of(self, run: str) -> tuple[ColumnElement[bool], ...]:
        return (table.c.namespace == self._namespace, table.c.run == run)

    def _update(self, run: str, request: str, *conditions: ColumnElement[bool]) -> Update:
        return update(table).where(*self._of(run), table.c.id == request, *conditions)


def _key(run: str) -> str:
    return f"inputs/{run}"
