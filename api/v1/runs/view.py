"""Runs: rows to the API's JSON. Pure. Called by the routes of runs."""

from typing import Any

from api.store.index.runs.runs import RunDetail, RunRow
from api.v1 import reason_links
from api.v1.timestamps import moment
from crds import names


def item(row: RunRow) -> dict[str, Any]:
    """A run as lists show it."""
    return {
        "id": names.id_of(row.name),
        "deployment_id": names.id_of(row.deployment) if row.deployment else None,
        "project": row.project,
        "status": row.status,
        "created_at": moment(row.created_at),
        "completed_at": moment(row.completed_at),
        "duration_ms": row.duration_ms,
    }


def created(row: RunDetail, public_url: str) -> dict[str, Any]:
    """A run as its creation is answered."""
    shown = item(row)
    return {
        **{key: shown[key] for key in ("id", "status", "created_at", "deployment_id", "project")},
        "input": row.input or {},
        "events_url": f"{public_url}/v1/runs/{shown['id']}/events",
    }


def single(
    row: RunDetail, public_url: str, position: int | None = None, docs_url: str = ""
) -> dict[str, Any]:
    """A run by itself: `output` only where it succeeded, `error` only where it failed.

    `queue_position` only where it waits for a place; 1 is the next.
    """
    shown = {**item(row), **created(row, public_url), "started_at": moment(row.started_at)}
    if position is not None:
        shown["queue_position"] = position
    if row.status == "succeeded":
        shown["output"] = row.output
    if row.status == "failed":
        error = row.error or {}
        reason = error.get("reason")
        shown["error"] = {
            "reason": reason,
            "message": error.get("message"),
            **reason_links.link(docs_url, reason),
        }
    return shown
