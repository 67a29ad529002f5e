"""Rows of labels of runs, by which lists find them.

Called within the transactions that write rows of runs. The rows follow the object while it exists.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.sql.schema import run_labels


async def add(
    connection: AsyncConnection,
    namespace: str,
    labels: Mapping[str, str] | None,
    project: str,
    created_at: datetime,
    order: int,
) -> None:
    """Insert the rows of a run's labels."""
    rows = [
        {
            "namespace": namespace,
            "label": f"{key}={value}",
            "project": project,
            "created_at": created_at,
            "ord": order,
        }
        for key, value in (labels or {}).items()
    ]
    if rows:
        await connection.execute(run_labels.insert(), rows)


async def remove(connection: AsyncConnection, namespace: str, orders: Sequence[int]) -> None:
    """Delete the rows of the labels of runs."""
    await connection.execute(
        delete(run_labels).where(run_labels.c.namespace == namespace, run_labels.c.ord.in_(orders))
    )
