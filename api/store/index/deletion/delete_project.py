"""Deletion of a Project's row, deployments, usage and uploads; its runs leave tombstones.

Called by `api.store.index.projects`, when a Project was deleted or recreated.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Table, delete, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.deletion import tombstones
from api.store.index.runs.runs import ENDED
from api.store.sql.schema import (
    deliveries,
    deployments,
    projects,
    remains,
    runs,
    uploads,
    usage_days,
    usage_models,
    workflow_pins,
)
from api.store.sql.upsert import insert

RUNS_PER_TRANSACTION = 50
"""Runs deleted per transaction: other writers wait no longer than that."""


@dataclass(frozen=True)
class DeletedProject:
    """A Project to delete; `holds_name`: no other Project has its name.

    Only then does it have the rows without an owner, and what the name alone identifies.
    """

    namespace: str
    name: str
    uid: str
    holds_name: bool

    async def rows_of(self, connection: AsyncConnection, table: Table) -> tuple[ColumnElement[bool], ...]:
        """Return the conditions that select its rows of a table of Runs or Deployments."""
        here = (table.c.namespace == self.namespace, table.c.project == self.name)
        if not self.holds_name:
            return *here, table.c.project_uid == self.uid
        query = select(projects.c.object_namespace).where(
            projects.c.namespace == self.namespace,
            projects.c.name == self.name,
            projects.c.uid == self.uid,
        )
        # What names it in another namespace is not its own.
        place = (await connection.execute(query)).scalar_one_or_none()
        owned = or_(table.c.project_uid == self.uid, table.c.project_uid.is_(None))
        return *here, table.c.object_namespace.is_not_distinct_from(place), owned


async def delete_run_batch(connection: AsyncConnection, project: DeletedProject, now: datetime) -> list[str]:
    """Delete a batch of the runs of a Project; return their names.

    Fewer than RUNS_PER_TRANSACTION are the last.
    """
    belong = await project.rows_of(connection, runs)
    query = select(runs.c.name).where(*belong).limit(RUNS_PER_TRANSACTION)
    names = list((await connection.execute(query)).scalars())
    await tombstones.delete_runs(connection, project.namespace, names, now)
    return names


async def delete_earlier_runs(
    connection: AsyncConnection, namespace: str, name: str, created: datetime, now: datetime
) -> list[str]:
    """Delete a batch of the ended runs that named a project before it was created; return their names."""
    query = (
        select(runs.c.name)
        .where(
            runs.c.namespace == namespace,
            runs.c.project == name,
            runs.c.project_uid.is_(None),
            runs.c.status.in_(ENDED),
            runs.c.created_at < created,
        )
        .limit(RUNS_PER_TRANSACTION)
    )
    names = list((await connection.execute(query)).scalars())
    await tombstones.delete_runs(connection, namespace, names, now)
    return names


async def delete_project(connection: AsyncConnection, project: DeletedProject) -> None:
    """Delete everything that belongs to a Project, except its runs and keys. Idempotent."""
    namespace, name, uid = project.namespace, project.name, project.uid
    belong = await project.rows_of(connection, deployments)
    await connection.execute(
        delete(projects).where(
            projects.c.namespace == namespace, projects.c.name == name, projects.c.uid == uid
        )
    )
    # Older logs have the Deployment's name alone.
    for log in (deployments.c.name + "." + deployments.c.uid, deployments.c.name):
        logs = select(literal(namespace), literal(tombstones.BUILD), log).where(*belong)
        note = insert(connection, remains).from_select(["namespace", "kind", "name"], logs)
        await connection.execute(note.on_conflict_do_nothing())
    await connection.execute(delete(deployments).where(*belong))
    for used in (usage_days, usage_models):
        await connection.execute(delete(used).where(used.c.namespace == namespace, used.c.project_uid == uid))
    await connection.execute(
        delete(deliveries).where(deliveries.c.namespace == namespace, deliveries.c.project_uid == uid)
    )
    await connection.execute(
        delete(workflow_pins).where(
            workflow_pins.c.namespace == namespace, workflow_pins.c.project_uid == uid
        )
    )
    if not project.holds_name:
        return
    # As if they had expired long ago: the next upload sweep deletes their bytes.
    await connection.execute(
        update(uploads)
        .where(uploads.c.namespace == namespace, uploads.c.project == name)
        .values(expires_at=tombstones.LONG_AGO, stored_at=None)
    )
