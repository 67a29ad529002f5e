"""How many runs there are, by project, deployment and status: the `total` of every list without counting.

Called within the transactions that make or change rows of runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.sql.schema import run_counts
from api.store.sql.upsert import adding


@dataclass(frozen=True)
class Place:
    """Where a shown run is counted."""

    project: str
    deployment: str | None
    status: str


async def move(
    connection: AsyncConnection, namespace: str, before: Place | None, after: Place | None
) -> None:
    """A run leaves `before` (None: it was not shown) and comes to `after` (None: no longer shown)."""
    if before == after:
        return
    for place, step in ((before, -1), (after, 1)):
        if place is not None:
            await add(connection, namespace, place, step)


async def add(connection: AsyncConnection, namespace: str, place: Place, step: int) -> None:
    """Counts `step` more runs at a place."""
    key = {
        "namespace": namespace,
        "project": place.project,
        "deployment": place.deployment or "",
        "status": place.status,
    }
    await connection.execute(adding(connection.dialect.name, run_counts, "count"), {**key, "step": step})


async def forget(connection: AsyncConnection, namespace: str, project: str, deployment: str | None) -> None:
    """Drops the places of a deployment where nothing is counted any more."""
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
    """Names of projects that have runs, in their order, behind the name `after`; "" are runs without one."""
    query = select(run_counts.c.project).where(run_counts.c.namespace == namespace)
    if after is not None:
        query = query.where(run_counts.c.project > after)
    query = query.distinct().order_by(run_counts.c.project).limit(limit)
    return (await connection.execute(query)).scalars().all()
