"""Records that go for good: a tombstone stays, and a note of what is left to delete beside the index.

The rows of a run go in one transaction, which notes its `remains`: artifacts, event log and archive are
deleted afterwards, and the note last. So a crash between any two steps leaves the note or nothing, and a
reader sees the run whole or not at all. A tombstone is for ever, because a name executes once.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.runs import counts
from api.store.index.runs.counts import Place
from api.store.sql.schema import archives, claims, remains, runs, tombstones
from api.store.sql.upsert import insert

RUN = "run"
BUILD = "build"
"""Kinds of remains: by the name of a Run, or of a Deployment's build log."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


async def bury(connection: AsyncConnection, namespace: str, names: Sequence[str], now: datetime) -> None:
    """Deletes the rows of runs, which become tombstones. Within the caller's transaction."""
    if not names:
        return
    columns = (
        runs.c.name,
        runs.c.uid,
        runs.c.project,
        runs.c.deployment,
        runs.c.status,
        runs.c.hidden,
        runs.c.completed_at,
    )
    query = select(*columns).where(runs.c.namespace == namespace, runs.c.name.in_(names))
    rows = (await connection.execute(query)).all()
    if not rows:
        return
    stones = [
        {"namespace": namespace, "name": row.name, "uid": row.uid, "ended_at": row.completed_at or now}
        for row in rows
    ]
    await connection.execute(insert(connection, tombstones).on_conflict_do_nothing(), stones)
    left = [{"namespace": namespace, "kind": RUN, "name": row.name} for row in rows]
    await connection.execute(insert(connection, remains).on_conflict_do_nothing(), left)
    for table, column in ((claims, claims.c.run), (archives, archives.c.run), (runs, runs.c.name)):
        await connection.execute(delete(table).where(table.c.namespace == namespace, column.in_(names)))
    shown = Counter(Place(row.project, row.deployment, row.status) for row in rows if not row.hidden)
    for place, amount in shown.items():
        await counts.add(connection, namespace, place, -amount)
    for project, deployment in {(place.project, place.deployment) for place in shown}:
        await counts.forget(connection, namespace, project, deployment)


async def leave(connection: AsyncConnection, namespace: str, kind: str, name: str) -> None:
    """Notes what is left to delete of something whose row goes in this transaction."""
    note = insert(connection, remains).values(namespace=namespace, kind=kind, name=name)
    await connection.execute(note.on_conflict_do_nothing())


async def is_buried(connection: AsyncConnection, namespace: str, name: str) -> bool:
    """Whether a run of this name was executed and is kept no more."""
    query = select(tombstones.c.name).where(tombstones.c.namespace == namespace, tombstones.c.name == name)
    return (await connection.execute(query)).one_or_none() is not None


async def count(connection: AsyncConnection, namespace: str) -> int:
    """How many tombstones there are."""
    query = select(func.count()).select_from(tombstones).where(tombstones.c.namespace == namespace)
    return int((await connection.execute(query)).scalar_one())
