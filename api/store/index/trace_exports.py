"""Ended runs and builds whose spans are to be exported. Called by `usage` and `api.telemetry.exporter`.

Each is added by the transaction that accounts it: a crash loses none. One that is exported but not removed is
exported again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.sql.database import Database
from api.store.sql.schema import trace_exports as table
from api.store.sql.upsert import insert

GIVE_UP_AFTER = timedelta(hours=24)
MAX_WAITING = 100_000
"""Beyond that the oldest ones are removed."""
PURGE_BATCH_SIZE = 1000
RUN, BUILD = "run", "build"


@dataclass(frozen=True)
class TraceExport:
    """A run or build, by its object name, that was queued for export and is due at `next_at`."""

    kind: str
    name: str
    queued_at: datetime
    next_at: datetime


class TraceExports:
    """The exports of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace
        self.enabled = False
        """Whether there is a collector; without one nothing is queued."""
        self.waiting = 0
        """Exports that wait, as last counted by the leader."""

    async def add(
        self, connection: AsyncConnection, kind: str, name: str, ended_at: datetime, now: datetime
    ) -> None:
        """Queue a run or build within a transaction.

        Not one that ended long ago: an index that was lost sees all ends of the objects again.
        """
        if not self.enabled or now - ended_at > GIVE_UP_AFTER:
            return
        row = insert(connection, table).values(
            namespace=self._namespace, kind=kind, name=name, queued_at=now, next_at=now
        )
        await connection.execute(row.on_conflict_do_nothing())

    async def due(self, now: datetime, limit: int) -> list[TraceExport]:
        """Return exports that are due, the one that is due longest first."""
        query = (
            select(table.c.kind, table.c.name, table.c.queued_at, table.c.next_at)
            .where(table.c.namespace == self._namespace, table.c.next_at <= now)
            .order_by(table.c.next_at, table.c.kind, table.c.name)
            .limit(limit)
        )
        async with self._database.read() as connection:
            return [TraceExport(**row._mapping) for row in await connection.execute(query)]

    async def remove(self, export: TraceExport) -> None:
        """Remove one that is done with. If a power failure loses this, it is exported again."""
        async with self._database.brief_write(durable=False) as connection:
            await connection.execute(delete(table).where(*self._key(export)))

    async def delay(self, export: TraceExport, next_at: datetime) -> None:
        """Make one due later."""
        async with self._database.brief_write(durable=False) as connection:
            await connection.execute(update(table).where(*self._key(export)).values(next_at=next_at))

    async def purge(self, now: datetime) -> int:
        """Remove a batch of exports that are too old or too many; return their number."""
        here = table.c.namespace == self._namespace
        old = select(table.c.kind, table.c.name).where(here, table.c.queued_at < now - GIVE_UP_AFTER)
        excess = (
            select(table.c.kind, table.c.name)
            .where(here)
            .order_by(table.c.queued_at.desc(), table.c.kind, table.c.name)
            .offset(MAX_WAITING)
        )
        async with self._database.read() as connection:
            found = {
                (row.kind, row.name)
                for query in (old, excess)
                for row in await connection.execute(query.limit(PURGE_BATCH_SIZE))
            }
        removed = 0
        for kind in (RUN, BUILD):
            names = sorted(name for of_kind, name in found if of_kind == kind)
            if names:
                async with self._database.write() as connection:
                    statement = delete(table).where(here, table.c.kind == kind, table.c.name.in_(names))
                    removed += (await connection.execute(statement)).rowcount
        return removed

    async def measure(self) -> None:
        """Count the exports that wait."""
        query = select(func.count()).select_from(table).where(table.c.namespace == self._namespace)
        async with self._database.read() as connection:
            self.waiting = int((await connection.execute(query)).scalar_one())

    def _key(self, export: TraceExport) -> tuple[ColumnElement[bool], ...]:
        return (
            table.c.namespace == self._namespace,
            table.c.kind == export.kind,
            table.c.name == export.name,
        )
