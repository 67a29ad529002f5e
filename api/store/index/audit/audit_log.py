"""Table of the audit log, append-only. Called by `api.routing.endpoint` and the route of the audit log.

A change is recorded before it happens: in the transaction of its first write to the index, else in one of its
own before its first write to the kube-apiserver. So no change escapes the log, and a call that stores a row
pays no further commit. A call that fails afterwards adds a second record.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, bindparam, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.audit import chain
from api.store.index.audit.change import Change, unrecorded
from api.store.page import RowPage
from api.store.sql.database import Database
from api.store.sql.schema import audit
from crds.times import format_time

ACCEPTED, FAILED, PRUNED = "accepted", "failed", "pruned"
SERVICE = "service"
"""The actor of records that retention adds."""
MIN_PRUNED_RECORDS = 100
"""Records that retention removes at once at least: each time costs one record."""
MAX_PRUNED_RECORDS = 5000
RECORDS_PER_READ = 500
_FIELDS = (
    "number",
    "time",
    "actor",
    "remote",
    "method",
    "path",
    "project",
    "target",
    "outcome",
    "code",
    "request_id",
    "previous",
    "hash",
)
_COLUMNS = [audit.c[name] for name in _FIELDS]
_HEAD = (
    select(audit.c.number, audit.c.hash)
    .where(audit.c.namespace == bindparam("namespace"), audit.c.number > 0)
    .order_by(audit.c.number.desc())
    .limit(1)
)
_INSERT = audit.insert()


@dataclass(frozen=True)
class AuditFilter:
    """Which records: of these projects (None: all, and those without a project), of an actor, of a time."""

    projects: frozenset[str] | None = None
    actor: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class _Head:
    """The newest record."""

    number: int
    hash: str


class AuditLog:
    """The audit log of one namespace. `count` is called with the outcome of each record."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace
        self.count: Callable[[str], None] = lambda _: None
        database.before_commit = self._add_to_commit

    async def record_ahead(self) -> None:
        """Record the current change in a transaction of its own, unless it is recorded."""
        if unrecorded() is not None:
            async with self._database.brief_write():
                pass

    async def record_failure(self, change: Change, code: str) -> None:
        """Record that a change failed with the error `code`, after it was recorded or may have happened."""
        async with self._database.brief_write() as connection:
            await self._append(connection, change, FAILED, code)
        self.count(FAILED)

    async def page(self, wanted: AuditFilter, offset: int, limit: int) -> RowPage[dict[str, Any]]:
        """Return a page of records as the API shows them, newest first."""
        conditions = self._conditions(wanted)
        async with self._database.read() as connection:
            count = select(func.count()).select_from(audit).where(*conditions)
            total = int((await connection.execute(count)).scalar_one())
            query = select(*_COLUMNS).where(*conditions).order_by(audit.c.number.desc())
            rows = (await connection.execute(query.offset(offset).limit(limit))).all()
        return RowPage(tuple(_record(row) for row in rows), total)

    async def oldest_first(self, wanted: AuditFilter) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield all records in batches, the oldest first."""
        conditions, after = self._conditions(wanted), 0
        while True:
            query = select(*_COLUMNS).where(*conditions, audit.c.number > after).order_by(audit.c.number)
            async with self._database.read() as connection:
                rows = (await connection.execute(query.limit(RECORDS_PER_READ))).all()
            if not rows:
                return
            after = rows[-1].number
            yield [_record(row) for row in rows]

    async def prune(self, before: datetime, most: int, now: datetime) -> int:
        """Remove the oldest records: those before a time, and all but the newest `most`. Return their number.

        All after the first one that stays do too, also with an earlier time, of a clock that was behind.
        A record in their place names the last removed one and its hash, so the rest stays verifiable.
        """
        here = audit.c.namespace == self._namespace
        async with self._database.read() as connection:
            last = await self._last(connection)
            if last is None:
                return 0
            due = (audit.c.number <= last.number - most) | (audit.c.time < before)
            oldest = select(audit.c.number).where(here).order_by(audit.c.number).limit(MAX_PRUNED_RECORDS)
            kept = select(func.min(audit.c.number)).where(here, ~due, audit.c.number.in_(oldest))
            bound = select(func.max(audit.c.number), func.count()).where(
                here,
                audit.c.number.in_(oldest),
                audit.c.number < func.coalesce(kept.scalar_subquery(), last.number),
            )
            through, count = (await connection.execute(bound)).one()
        if through is None or count < MIN_PRUNED_RECORDS:
            return 0
        async with self._database.write() as connection:
            cut = select(audit.c.hash).where(here, audit.c.number == through)
            removed_hash = (await connection.execute(cut)).scalar_one_or_none()
            if removed_hash is None:
                return 0  # Another leader has removed them meanwhile.
            await connection.execute(delete(audit).where(here, audit.c.number <= through))
            marker = Change(now, SERVICE, "", "", "", "", target=str(through))
            await self._append(connection, marker, PRUNED, str(removed_hash))
        self.count(PRUNED)
        return int(count)

    async def _add_to_commit(self, connection: AsyncConnection) -> Callable[[], None] | None:
        """Record the current change in this transaction; the result is called once it is committed."""
        change = unrecorded()
        if change is None:
            return None
        await self._append(connection, change, ACCEPTED, None)

        def committed() -> None:
            change.mark_recorded()
            self.count(ACCEPTED)

        return committed

    async def _append(
        self, connection: AsyncConnection, change: Change, outcome: str, code: str | None
    ) -> None:
        last = await self._last(connection)
        values: dict[str, Any] = {
            "number": 1 if last is None else last.number + 1,
            "time": change.time,
            "actor": change.actor,
            "remote": change.remote,
            "method": change.method,
            "path": change.path,
            "project": change.project,
            "target": change.target,
            "outcome": outcome,
            "code": code,
            "request_id": change.request_id,
            "previous": chain.FIRST_PREVIOUS if last is None else last.hash,
        }
        shown = {**values, "time": format_time(change.time)}
        row = {"namespace": self._namespace, **values, "hash": chain.digest(shown)}
        await connection.execute(_INSERT, row)

    async def _last(self, connection: AsyncConnection) -> _Head | None:
        row = (await connection.execute(_HEAD, {"namespace": self._namespace})).one_or_none()
        return _Head(*row) if row else None

    def _conditions(self, wanted: AuditFilter) -> list[ColumnElement[bool]]:
        conditions = [audit.c.namespace == self._namespace]
        if wanted.projects is not None:
            conditions.append(audit.c.project.in_(sorted(wanted.projects)))
        if wanted.actor is not None:
            conditions.append(audit.c.actor == wanted.actor)
        if wanted.since is not None:
            conditions.append(audit.c.time >= wanted.since)
        if wanted.until is not None:
            conditions.append(audit.c.time < wanted.until)
        return conditions


def _record(row: Row[Any]) -> dict[str, Any]:
    """Return a row as the API shows it, and as its hash covers it."""
    return {**row._mapping, "time": format_time(row.time)}
