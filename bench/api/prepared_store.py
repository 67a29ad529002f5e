"""Bulk insert of many finished runs into a store. Called by measurements of lists.

Their Kubernetes objects are deleted, as for nearly all stored runs.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert

from api.store.sql.schema import run_counts, runs, sequences
from api.store.store import Store

PROJECTS, DEPLOYMENTS = 10, 50
STATUSES = ("succeeded", "succeeded", "succeeded", "failed", "canceled")
ROWS_PER_INSERT = 2000


def row(namespace: str, number: int, now: datetime) -> dict[str, Any]:
    """Return the columns of the run with this number, counted from 1."""
    status = STATUSES[number % len(STATUSES)]
    created = now - timedelta(days=1) + timedelta(milliseconds=number * 100)
    return {
        "namespace": namespace,
        "name": f"run-filled-{number:07}",
        "uid": f"uid-{number}",
        "ord": number,
        "version": number,
        "project": f"project-{number % PROJECTS}",
        "deployment": f"dep-{number % DEPLOYMENTS}",
        "status": status,
        "hidden": False,
        "withdrawn": False,
        "present": False,
        "created_at": created,
        "started_at": created,
        "completed_at": created + timedelta(seconds=5),
        "duration_ms": 5000,
        "input": {"topic": "tides"},
        "cancel": False,
        "output": {"answer": number},
        "terminal": {"type": "run.completed", "data": {}},
        "terminal_id": 2,
        "accounted": True,
    }


async def fill(store: Store, count: int) -> None:
    """Insert `count` runs and their counters."""
    now, counts = datetime.now(UTC), dict[tuple[str, str, str], int]()
    for first in range(1, count + 1, ROWS_PER_INSERT):
        rows = [row(store.namespace, n, now) for n in range(first, min(first + ROWS_PER_INSERT, count + 1))]
        for run_row in rows:
            key = (run_row["project"], run_row["deployment"], run_row["status"])
            counts[key] = counts.get(key, 0) + 1
        async with store.database.write() as connection:
            await connection.execute(insert(runs), rows)
    values = [
        {"namespace": store.namespace, "project": p, "deployment": d, "status": s, "count": n}
        for (p, d, s), n in counts.items()
    ]
    async with store.database.write() as connection:
        await connection.execute(insert(run_counts), values)
        await connection.execute(
            insert(sequences), [{"namespace": store.namespace, "name": "ord", "value": count}]
        )
