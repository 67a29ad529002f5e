"""Hides the runs that name a project of another namespace. Called by the table of projects."""

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.runs import counts, labels
from api.store.index.runs.counts import CountKey
from api.store.sql.schema import runs

RUNS_PER_TRANSACTION = 50
"""Runs hidden per transaction: other writers wait no longer than that."""


async def hide_batch(connection: AsyncConnection, namespace: str, project: str, place: str | None) -> int:
    """Hide a batch of the runs of a project that are not in its `place`; return their number.

    Fewer than RUNS_PER_TRANSACTION are the last.
    """
    query = (
        select(runs.c.name, runs.c.deployment, runs.c.status, runs.c.ord)
        .where(
            runs.c.namespace == namespace,
            runs.c.hidden.is_(False),
            runs.c.project == project,
            runs.c.object_namespace.is_distinct_from(place),
        )
        .limit(RUNS_PER_TRANSACTION)
    )
    rows = (await connection.execute(query)).all()
    if rows:
        here = (runs.c.namespace == namespace, runs.c.name.in_([row.name for row in rows]))
        await connection.execute(update(runs).where(*here).values(hidden=True))
        await labels.remove(connection, namespace, [row.ord for row in rows])
    for row in rows:
        await counts.move(connection, namespace, CountKey(project, row.deployment, row.status), None)
    return len(rows)
