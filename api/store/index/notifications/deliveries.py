"""Table of deliveries of notifications. Called by the loop that delivers, and by the routes of deliveries."""

import functools
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Integer, Select, bindparam, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.errors import Missing
from api.store.index.notifications.outbox import DELIVERED, FAILED, GIVE_UP_AFTER, PENDING, known_names
from api.store.page import RowPage
from api.store.sql.database import Database
from api.store.sql.schema import deliveries as table
from api.store.sql.schema import projects

KEEP_FOR = timedelta(days=7)
MAX_KEPT_DELIVERIES = 10_000
"""Of one project."""
PURGE_BATCH_SIZE = 1000


@dataclass(frozen=True)
class DeliveryRow:
    """A delivery of one event to one receiver; `status` is pending, delivered or failed."""

    id: str
    project: str
    project_uid: str
    notification: str
    type: str
    object: str
    event_time: datetime
    created_at: datetime
    status: str
    attempts: int
    next_at: datetime
    expires_at: datetime
    completed_at: datetime | None
    response_status: int | None
    error: str | None


@dataclass(frozen=True)
class DeliveryUpdate:
    """What an attempt changes. `failing` None: it says nothing about the receiver."""

    status: str
    attempts: int
    next_at: datetime
    completed_at: datetime | None
    response_status: int | None
    error: str | None
    failing: bool | None


_COLUMNS = [table.c[field.name] for field in fields(DeliveryRow)]


@functools.cache
def _due() -> Select[Any]:
    """Return the query of due deliveries, made once: it is asked every two seconds."""
    order = (table.c.next_at, table.c.id)
    rank = func.row_number().over(partition_by=table.c.project_uid, order_by=order)
    ranked = (
        select(*_COLUMNS, rank.label("rank"))
        .where(
            table.c.namespace == bindparam("namespace"),
            table.c.status == PENDING,
            table.c.next_at <= bindparam("now"),
        )
        .subquery()
    )
    return (
        select(*[ranked.c[field.name] for field in fields(DeliveryRow)])
        .where(ranked.c.rank <= bindparam("per_project"))
        .order_by(ranked.c.rank, ranked.c.next_at, ranked.c.id)
        .limit(bindparam("most", type_=Integer))
    )


class Deliveries:
    """The deliveries of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace
        self.pending = 0
        """Pending deliveries, as last counted by the leader."""
        self.failing = 0
        """Receivers whose last delivery was given up, as last counted by the leader."""

    async def due(self, now: datetime, per_project: int, limit: int) -> list[DeliveryRow]:
        """Return due deliveries, at most `per_project` of each, the first of every project first."""
        values = {"namespace": self._namespace, "now": now, "per_project": per_project, "most": limit}
        async with self._database.read() as connection:
            return [DeliveryRow(**row._mapping) for row in await connection.execute(_due(), values)]

    async def record_attempt(self, row: DeliveryRow, change: DeliveryUpdate) -> None:
        """Record an attempt. If a power failure loses this, the receiver gets the delivery again."""
        values = {name: getattr(change, name) for name in _UPDATED}
        # A redelivery requested meanwhile has another time and wins.
        statement = update(table).where(
            table.c.namespace == self._namespace,
            table.c.id == row.id,
            table.c.status == PENDING,
            table.c.next_at == row.next_at,
        )
        async with self._database.brief_write(durable=False) as connection:
            changed = (await connection.execute(statement.values(values))).rowcount
            if changed and change.failing is not None:
                await self._note_failing(connection, row, change.failing)

    async def page(self, project_uid: str, now: datetime, offset: int, limit: int) -> RowPage[DeliveryRow]:
        """Return a page of a project's deliveries of the last days, newest first."""
        query = select(*_COLUMNS).where(
            table.c.namespace == self._namespace,
            table.c.project_uid == project_uid,
            table.c.created_at >= now - KEEP_FOR,
        )
        async with self._database.read() as connection:
            count = select(func.count()).select_from(query.subquery())
            total = int((await connection.execute(count)).scalar_one())
            rows = await connection.execute(query.order_by(table.c.id.desc()).offset(offset).limit(limit))
            return RowPage(tuple(DeliveryRow(**row._mapping) for row in rows), total)

    async def redeliver(self, project_uid: str, delivery: str, now: datetime) -> DeliveryRow:
        """Make a delivery due as if it were new, with the same id; return it. Raises Missing."""
        statement = (
            update(table)
            .where(
                table.c.namespace == self._namespace,
                table.c.project_uid == project_uid,
                table.c.id == delivery,
            )
            .values(
                status=PENDING, attempts=0, next_at=now, expires_at=now + GIVE_UP_AFTER, completed_at=None
            )
            .returning(*_COLUMNS)
        )
        async with self._database.brief_write() as connection:
            row = (await connection.execute(statement)).one_or_none()
            if row is None:
                # Within the transaction: a change that is none has no record in the audit log.
                raise Missing(
                    f"delivery {delivery[:100]!r} not found; "
                    "the project's list of deliveries has those of the last seven days"
                )
        return DeliveryRow(**row._mapping)

    async def purge(self, now: datetime) -> bool:
        """Delete a batch of old deliveries; return whether there may be more."""
        here = table.c.namespace == self._namespace
        old = select(table.c.id).where(here, table.c.created_at < now - KEEP_FOR).limit(PURGE_BATCH_SIZE)
        crowded = (
            select(table.c.project_uid)
            .where(here)
            .group_by(table.c.project_uid)
            .having(func.count() > MAX_KEPT_DELIVERIES)
        )
        async with self._database.read() as connection:
            ids: set[str] = set((await connection.execute(old)).scalars())
            for project_uid in (await connection.execute(crowded)).scalars().all():
                excess = (
                    select(table.c.id)
                    .where(here, table.c.project_uid == project_uid)
                    .order_by(table.c.id.desc())
                    .offset(MAX_KEPT_DELIVERIES)
                    .limit(PURGE_BATCH_SIZE)
                )
                ids |= set((await connection.execute(excess)).scalars())
        batch = sorted(ids)[:PURGE_BATCH_SIZE]
        if batch:
            async with self._database.write() as connection:
                await connection.execute(delete(table).where(here, table.c.id.in_(batch)))
        return len(batch) == PURGE_BATCH_SIZE

    async def measure(self) -> None:
        """Count the pending deliveries and the failing receivers."""
        pending = (
            select(func.count())
            .select_from(table)
            .where(table.c.namespace == self._namespace, table.c.status == PENDING)
        )
        failing = select(projects.c.spec["notifications"], projects.c.failing_notifications).where(
            projects.c.namespace == self._namespace, projects.c.failing_notifications.is_not(None)
        )
        async with self._database.read() as connection:
            self.pending = int((await connection.execute(pending)).scalar_one())
            rows = (await connection.execute(failing)).all()
        self.failing = sum(len(known_names(*row)) for row in rows)

    async def _note_failing(self, connection: AsyncConnection, row: DeliveryRow, failing: bool) -> None:
        here = (
            projects.c.namespace == self._namespace,
            projects.c.name == row.project,
            projects.c.uid == row.project_uid,
        )
        query = select(projects.c.spec["notifications"], projects.c.failing_notifications).where(*here)
        found = (await connection.execute(query)).one_or_none()
        if found is None:
            return
        before = set(found[1] or ())
        names = before | {row.notification} if failing else before - {row.notification}
        after = known_names(found[0], names)
        if set(after) != before:
            statement = update(projects).where(*here).values(failing_notifications=after or None)
            await connection.execute(statement)


_UPDATED = [field.name for field in fields(DeliveryUpdate) if field.name != "failing"]
STATUSES = (PENDING, DELIVERED, FAILED)
