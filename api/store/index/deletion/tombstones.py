"""Permanent deletion of records: a tombstone stays, and a note of the data left to delete outside the index.

A run's rows are deleted in one transaction, which notes its `remains`: artifacts, event log and archive are
deleted afterwards, and the note last. So a crash between two steps leaves the note or nothing, and a reader
sees the whole run or nothing. A tombstone is permanent, because a name executes once.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.runs import counts, labels
from api.store.index.runs.counts import CountKey
from api.store.sql.schema import archives, claims, input_requests, remains, runs, tombstones
from api.store.sql.upsert import insert

RUN = "run"
BUILD = "build"
"""Kinds of remains, by the name of a Run or of a Deployment's build log."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


async def delete_runs(
    connection: AsyncConnection, namespace: str, names: Sequence[str], now: datetime
) -> None:
    """Replace the rows of runs with tombstones. Within the caller's transaction."""
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
        runs.c.ord,
    )
    query = select(*columns).where(runs.c.namespace == namespace, runs.c.name.in_(names))
    rows = (await connection.execute(query)).all()
    if not rows:
        return
    tombstone_rows = [
        {"namespace": namespace, "name": row.name, "uid": row.uid, "ended_at": row.completed_at or now}
        for row in rows
    ]
    await connection.execute(insert(connection, tombstones).on_conflict_do_nothing(), tombstone_rows)
    remains_rows = [{"namespace": namespace, "kind": RUN, "name": row.name} for row in rows]
    await connection.execute(insert(connection, remains).on_conflict_do_nothing(), remains_rows)
    for table, column in (
        (claims, claims.c.run),
        (archives, archives.c.run),
        (input_requests, input_requests.c.run),
        (runs, runs.c.name),
    ):
        await connection.execute(delete(table).where(table.c.namespace == namespace, column.in_(names)))
    await labels.remove(connection, namespace, [row.ord for row in rows])
    visible = Counter(CountKey(row.project, row.deployment, row.status) for row in rows if not row.hidden)
    for key, amount in visible.items():
        await counts.add(connection, namespace, key, -amount)
    for project, deployment in {(key.project, key.deployment) for key in visible}:
        await counts.delete_empty(connection, namespace, project, deployment)


async def note_remains(connection: AsyncConnection, namespace: str, kind: str, name: str) -> None:
    """Note data left to delete of something whose row is deleted in this transaction."""
    note = insert(connection, remains).values(namespace=namespace, kind=kind, name=name)
    await connection.execute(note.on_conflict_do_nothing())


async def has_tombstone(connection: AsyncConnection, namespace: str, name: str) -> bool:
    """Return whether a run of this name was executed and its record deleted."""
    query = select(tombstones.c.name).where(tombstones.c.namespace == namespace, tombstones.c.name == name)
    return (await connection.execute(query)).one_or_none() is not None


async def count(connection: AsyncConnection, namespace: str) -> int:
    """Return the number of tombstones."""
    query = select(func.count()).select_from(tombstones).where(tombstones.c.namespace == namespace)
    return int((await connection.execute(query)).scalar_one())
