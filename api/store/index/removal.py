"""What goes with a Project: its row, its deployments, its usage, and its runs but for their tombstones.

Called within the transaction that learns that a Project is gone or was made anew.
A tombstone keeps a run's name and end for ever, because a name executes once.
"""

from datetime import datetime

from sqlalchemy import case, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.columns import moment
from api.store.index import counts
from api.store.index.counts import Place
from api.store.schema import deployments, projects, removed_projects, runs, usage_days
from api.store.upsert import insert

LIVE = ("pending", "running")


async def remove_project(
    connection: AsyncConnection, namespace: str, name: str, uid: str, now: datetime
) -> None:
    """Removes all that belongs to the Project of this uid. Repeating it changes nothing."""
    gone = insert(connection, removed_projects).values(
        namespace=namespace, uid=uid, name=name, removed_at=now
    )
    await connection.execute(gone.on_conflict_do_nothing())
    await connection.execute(
        delete(projects).where(
            projects.c.namespace == namespace, projects.c.name == name, projects.c.uid == uid
        )
    )
    await connection.execute(
        delete(deployments).where(
            deployments.c.namespace == namespace,
            deployments.c.project == name,
            or_(deployments.c.project_uid == uid, deployments.c.project_uid.is_(None)),
        )
    )
    await connection.execute(
        delete(usage_days).where(usage_days.c.namespace == namespace, usage_days.c.project_uid == uid)
    )
    belongs = (
        runs.c.namespace == namespace,
        runs.c.project == name,
        or_(runs.c.project_uid == uid, runs.c.project_uid.is_(None)),
        runs.c.hidden.is_(False),
    )
    shown = (
        select(runs.c.deployment, runs.c.status, func.count().label("amount"))
        .where(*belongs)
        .group_by(runs.c.deployment, runs.c.status)
    )
    for row in (await connection.execute(shown)).all():
        await counts.add(connection, namespace, Place(name, row.deployment, row.status), -row.amount)
    await connection.execute(
        update(runs)
        .where(*belongs)
        .values(
            hidden=True,
            completed_at=func.coalesce(runs.c.completed_at, moment(now)),
            status=case((runs.c.status.in_(LIVE), "canceled"), else_=runs.c.status),
        )
    )


async def is_removed(connection: AsyncConnection, namespace: str, uid: str | None) -> bool:
    """Whether the Project of this uid was removed."""
    if uid is None:
        return False
    query = select(removed_projects.c.uid).where(
        removed_projects.c.namespace == namespace, removed_projects.c.uid == uid
    )
    return (await connection.execute(query)).one_or_none() is not None
