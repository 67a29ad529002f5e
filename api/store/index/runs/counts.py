"""Counters of runs by project, deployment and status: every list gets its `total` without counting.

Called within the transactions that insert or change rows of runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.sql.schema import run_counts
from api.store.sql.upsert import increment_statement


@dataclass(frozen=True)
class CountKey:
    """The counter of a visible run."""

    project: str
    deployment: str | None
    status: str


async def move(
    connection: AsyncConnection, namespace: str, before: CountKey | None, after: CountKey | None
) -> None:
    """Move a run from counter `before` (None: it was not visible) to `after` (None: no longer visible)."""
    if before == after:
        return
    for key, step in ((before, -1), (after, 1)):
        if key is not None:
            await add(connection, namespace, key, step)


async def add(connection: AsyncConnection, namespace: str, key: CountKey, step: int) -> None:
    """Add `step` to a counter."""
    values = {
        "namespace": namespace,
        "project": key.project,
        "deployment": key.deployment or "",
        "status": key.status,
    }
    await connection.execute(
        increment_statement(connection.dialect.name, run_counts, "count"), {**values, "step": step}
    )


async def delete_empty(
    connection: AsyncConnection, namespace: str, project: str, deployment: str | None
) -> None:
    """Delete a deployment's counters that are 0."""
    await connection.execute(
        delete(run_counts).where(
            run_counts.c.namespace == namespace,
            run_counts.c.project == project,
            run_counts.c.deployment == (deployment or ""),
            run_counts.c.count == 0,
        )
    )


async def projects(
    connection: AsyncConnection, namespace: str, after: str | None, limit: int
) -> Sequence[str]:
    """Return names of projects with runs, sorted, after the name `after`; "" stands for runs without one."""
    query = select(run_counts.c.project).where(run_counts.c.namespace == namespace)
    if after is not None:
        query = query.where(run_counts.c.project > after)
    query = query.distinct().order_by(run_counts.c.project).limit(limit)
    return (await connection.execute(query)).scalars().all()
