"""Marks of deleted Projects: no reader sees one from its mark on, while its records are being deleted.

Called by the tables of projects, deployments, runs and keys.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.sql.schema import projects, removed_projects
from api.store.sql.upsert import insert

PROJECT_PRESENT: ColumnElement[bool] = ~exists().where(
    removed_projects.c.namespace == projects.c.namespace, removed_projects.c.uid == projects.c.uid
)
"""Condition on a row of a project: it is not marked."""


async def mark_removed(
    connection: AsyncConnection, namespace: str, name: str, uid: str, now: datetime
) -> None:
    """Mark the Project of this uid as deleted. Idempotent."""
    row: dict[str, Any] = {"namespace": namespace, "uid": uid, "name": name, "removed_at": now}
    await connection.execute(insert(connection, removed_projects).values(**row).on_conflict_do_nothing())


async def is_removed(connection: AsyncConnection, namespace: str, uid: str | None) -> bool:
    """Return whether the Project of this uid was deleted."""
    if uid is None:
        return False
    query = select(removed_projects.c.uid).where(
        removed_projects.c.namespace == namespace, removed_projects.c.uid == uid
    )
    return (await connection.execute(query)).one_or_none() is not None
