"""Deletion of a Deployment's row: accounts its build and notes its build log for deletion.

Called within the transaction of `api.store.index.deployments.deployments`.
"""

from datetime import datetime

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.deletion import tombstones
from api.store.index.deployments.build_times import FINISHED_PHASES, EndedBuild, build_ms, ended_at
from api.store.index.usage import Measures, add_usage
from api.store.logs.build_logs import key_of
from api.store.sql.schema import deployments


async def delete_deployment(
    connection: AsyncConnection, namespace: str, name: str, uid: str, now: datetime
) -> bool:
    """Delete the row of the Deployment with this uid; return whether there was one.

    A build that is not accounted yet counts until now: later, its end is unknown.
    """
    deletion = delete(deployments).where(
        deployments.c.namespace == namespace, deployments.c.name == name, deployments.c.uid == uid
    )
    row = (await connection.execute(deletion.returning(*deployments.c))).one_or_none()
    if row is None:
        return False
    # Older logs have the Deployment's name alone.
    for log in (key_of(name, uid), name):
        await tombstones.note_remains(connection, namespace, tombstones.BUILD, log)
    if not row.accounted:
        build = EndedBuild(name, row.building_at, tuple(row.conditions))
        ended = ended_at(build) if row.phase in FINISHED_PHASES else now
        await add_usage(connection, namespace, row, ended, Measures(build_ms=build_ms(build, ended)))
    return True
