"""What happens when a Deployment's row goes: its build is accounted, its log noted to be deleted.

Within the transaction of `api.store.index.deployments`.
"""

from datetime import datetime

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.build_times import BUILT, EndedBuild, build_ms, ended_at
from api.store.index.deletion import tombstones
from api.store.index.usage import Measures, add
from api.store.logs.build_logs import key_of
from api.store.sql.schema import deployments


async def depart(connection: AsyncConnection, namespace: str, name: str, uid: str, now: datetime) -> bool:
    """Deletes the row of this very Deployment; whether there was one.

    A build that nobody has accounted yet counts until now: what is gone cannot be asked any more.
    """
    gone = delete(deployments).where(
        deployments.c.namespace == namespace, deployments.c.name == name, deployments.c.uid == uid
    )
    row = (await connection.execute(gone.returning(*deployments.c))).one_or_none()
    if row is None:
        return False
    # Older logs have the Deployment's name alone.
    for log in (key_of(name, uid), name):
        await tombstones.leave(connection, namespace, tombstones.BUILD, log)
    if not row.accounted:
        build = EndedBuild(name, row.building_at, tuple(row.conditions))
        ended = ended_at(build) if row.phase in BUILT else now
        await add(connection, namespace, row, ended, Measures(build_ms=build_ms(build, ended)))
    return True
