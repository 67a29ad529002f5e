"""Inserts the deliveries of an event, in the transaction that records its cause.

Called by the tables of usage, projects and questions. A crash thus loses no event that a reader can see.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store import ulid
from api.store.sql.schema import deliveries, projects

MAX_PENDING_DELIVERIES = 1000
"""Of one project; further ones are recorded as failed and can be redelivered."""
GIVE_UP_AFTER = timedelta(hours=24)
PENDING, DELIVERED, FAILED = "pending", "delivered", "failed"
PREFIX = "msg_"
Notification = Mapping[str, Any]


@dataclass(frozen=True)
class ProjectEvent:
    """An event of a project: `type` as in the CRD, `object` the name of the Run or Deployment."""

    type: str
    object: str
    time: datetime


def known_names(notifications: Iterable[Notification] | None, names: Iterable[str]) -> list[str]:
    """Return those of the names that a project's notifications still have."""
    return sorted({str(each["name"]) for each in notifications or ()}.intersection(names))


def receivers(
    notifications: Iterable[Notification] | None, event: ProjectEvent, now: datetime
) -> tuple[str, ...]:
    """Return the names of the notifications that want the event.

    None wants an old one: an index that was lost sees all ends of the objects again.
    """
    if now - event.time > GIVE_UP_AFTER:
        return ()
    return tuple(str(each["name"]) for each in notifications or () if event.type in each["events"])


async def record_event(
    connection: AsyncConnection,
    namespace: str,
    project: str,
    project_uid: str | None,
    event: ProjectEvent,
    now: datetime,
) -> None:
    """Insert the deliveries of an event of a stored project; none if the project is another one."""
    query = select(projects.c.uid, projects.c.spec["notifications"].label("notifications")).where(
        projects.c.namespace == namespace, projects.c.name == project
    )
    row = (await connection.execute(query)).one_or_none()
    if row is None or project_uid not in (None, row.uid):
        return
    names = receivers(row.notifications, event, now)
    if names:
        await insert_deliveries(connection, namespace, project, row.uid, names, event, now)


async def insert_deliveries(
    connection: AsyncConnection,
    namespace: str,
    project: str,
    project_uid: str,
    names: Iterable[str],
    event: ProjectEvent,
    now: datetime,
) -> None:
    """Insert a delivery of the event for each of these notifications."""
    rows = []
    for pending, name in enumerate(names, await _pending(connection, namespace, project_uid)):
        full = pending >= MAX_PENDING_DELIVERIES
        values = {
            "namespace": namespace,
            "id": f"{PREFIX}{ulid.new()}",
            "project": project,
            "project_uid": project_uid,
            "notification": name,
            "type": event.type,
            "object": event.object,
            "event_time": event.time,
            "created_at": now,
            "status": FAILED if full else PENDING,
            "attempts": 0,
            "next_at": now,
            "expires_at": now + GIVE_UP_AFTER,
            "completed_at": now if full else None,
            "error": f"{MAX_PENDING_DELIVERIES} deliveries of the project are pending" if full else None,
        }
        rows.append(values)
    await connection.execute(deliveries.insert(), rows)


async def _pending(connection: AsyncConnection, namespace: str, project_uid: str) -> int:
    query = (
        select(func.count())
        .select_from(deliveries)
        .where(
            deliveries.c.namespace == namespace,
            deliveries.c.project_uid == project_uid,
            deliveries.c.status == PENDING,
        )
    )
    return int((await connection.execute(query)).scalar_one())
