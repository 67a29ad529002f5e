"""Bulk insert of many finished runs into a store. Called by measurements of lists.

Their Kubernetes objects are deleted, as for nearly all stored runs.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert

from api.store.sql.schema import run_counts, run_labels, runs, sequences
from api.store.store import Store

PROJECTS, DEPLOYMENTS, TEAMS = 10, 50, 7
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
        "labels": {"team": f"t{number % TEAMS}", "stage": "test"},
        "input": {"topic": "tides"},
        "cancel": False,
        "output": {"answer": number},
        "terminal": {"type": "run.completed", "data": {}},
        "terminal_id": 2,
        "accounted": True,
        # Otherwise the API server measures each of them, as after an upgrade.
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "artifact_bytes": 0,
    }


def label_rows(run_row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the labels of a run's row."""
    copied = {name: run_row[name] for name in ("namespace", "project", "created_at", "ord")}
    return [{**copied, "label": f"{key}={value}"} for key, value in run_row["labels"].items()]


async def fill(store: Store, count: int) -> None:
    """Insert `count` runs with their labels and counters."""
    now, counts = datetime.now(UTC), dict[tuple[str, str, str], int]()
    for first in range(1, count + 1, ROWS_PER_INSERT):
        rows = [row(store.namespace, n, now) for n in range(first, min(first + ROWS_PER_INSERT, count + 1))]
        for run_row in rows:
            key = (run_row["project"], run_row["deployment"], run_row["status"])
            counts[key] = counts.get(key, 0) + 1
        async with store.database.write() as connection:
            await connection.execute(insert(runs), rows)
            labels = [label for run_row in rows for label in label_rows(run_row)]
            await connection.execute(insert(run_labels), labels)
    values = [
        {"namespace": store.namespace, "project": p, "deployment": d, "status": s, "count": n}
        for (p, d, s), n in counts.items()
    ]
    async with store.database.write() as connection:
        await connection.execute(insert(run_counts), values)
        await connection.execute(
            insert(sequences), [{"namespace": store.namespace, "name": "ord", "value": count}]
        )
        if connection.dialect.name == "postgresql":
            # As autovacuum does within a minute: without statistics, two labels take seconds.
            await connection.exec_driver_sql("ANALYZE")
