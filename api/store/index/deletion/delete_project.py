"""What goes with a Project: its row, its deployments, its usage, its uploads; its runs leave tombstones.

Called by `api.store.index.projects`, which learns that a Project is gone or was made anew.
"""

from datetime import datetime

from sqlalchemy import delete, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.deletion import tombstones
from api.store.sql.schema import deployments, projects, remains, removed_projects, runs, uploads, usage_days
from api.store.sql.upsert import insert

BATCH = 50
"""Runs buried in one transaction: others who write wait for no more."""


async def bury_runs(connection: AsyncConnection, namespace: str, name: str, uid: str, now: datetime) -> bool:
    """Buries a batch of the runs of a Project; gives whether these were all."""
    query = (
        select(runs.c.name)
        .where(
            runs.c.namespace == namespace,
            runs.c.project == name,
            or_(runs.c.project_uid == uid, runs.c.project_uid.is_(None)),
        )
        .limit(BATCH)
    )
    found = (await connection.execute(query)).scalars().all()
    await tombstones.bury(connection, namespace, found, now)
    return len(found) < BATCH


async def remove_project(
    connection: AsyncConnection, namespace: str, name: str, uid: str, now: datetime
) -> None:
    """Removes all that belongs to the Project of this uid, but its runs. Repeating it changes nothing."""
    gone = insert(connection, removed_projects).values(
        namespace=namespace, uid=uid, name=name, removed_at=now
    )
    await connection.execute(gone.on_conflict_do_nothing())
    await connection.execute(
        delete(projects).where(
            projects.c.namespace == namespace, projects.c.name == name, projects.c.uid == uid
        )
    )
    belong = (
        deployments.c.namespace == namespace,
        deployments.c.project == name,
        or_(deployments.c.project_uid == uid, deployments.c.project_uid.is_(None)),
    )
    # Older logs have the Deployment's name alone.
    for log in (deployments.c.name + "." + deployments.c.uid, deployments.c.name):
        logs = select(literal(namespace), literal(tombstones.BUILD), log).where(*belong)
        note = insert(connection, remains).from_select(["namespace", "kind", "name"], logs)
        await connection.execute(note.on_conflict_do_nothing())
    await connection.execute(delete(deployments).where(*belong))
    await connection.execute(
        delete(usage_days).where(usage_days.c.namespace == namespace, usage_days.c.project_uid == uid)
    )
    # As if they had expired long ago: their bytes go with the next look at uploads.
    await connection.execute(
        update(uploads)
        .where(uploads.c.namespace == namespace, uploads.c.project == name)
        .values(expires_at=tombstones.LONG_AGO, stored_at=None)
    )


async def is_removed(connection: AsyncConnection, namespace: str, uid: str | None) -> bool:
    """Whether the Project of this uid was removed."""
    if uid is None:
        return False
    query = select(removed_projects.c.uid).where(
        removed_projects.c.namespace == namespace, removed_projects.c.uid == uid
    )
    return (await connection.execute(query)).one_or_none() is not None
