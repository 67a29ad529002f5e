"""Run rows as JSON. Pure. Called by the routes of runs."""

from typing import Any

from api.store.index.runs.runs import RunDetail, RunRow
from api.v1 import reason_links
from api.v1.timestamps import timestamp
from api.v1.waiting import waiting
from crds import names


def item(row: RunRow) -> dict[str, Any]:
    """Return a run as a list item."""
    return {
        "id": names.id_of(row.name),
        "deployment_id": names.id_of(row.deployment) if row.deployment else None,
        "project": row.project,
        "status": row.status,
        "created_at": timestamp(row.created_at),
        "completed_at": timestamp(row.completed_at),
        "duration_ms": row.duration_ms,
    }


def created(row: RunDetail, public_url: str) -> dict[str, Any]:
    """Return a run as the response to its creation."""
    fields = item(row)
    return {
        **{key: fields[key] for key in ("id", "status", "created_at", "deployment_id", "project")},
        "input": row.input or {},
        "events_url": f"{public_url}/v1/runs/{fields['id']}/events",
    }


def detail(
    row: RunDetail, public_url: str, position: int | None = None, docs_url: str = ""
) -> dict[str, Any]:
    """Return a run with all fields: `output` only if it succeeded, `error` only if it failed.

    `queue_position` only while it waits for a run slot, from 1; `waiting` only until it has started;
    `cancel_requested` only until it has ended.
    """
    fields = {**item(row), **created(row, public_url), "started_at": timestamp(row.started_at)}
    if position is not None:
        fields["queue_position"] = position
    if row.status == "pending" and row.waiting:
        fields["waiting"] = waiting(row.waiting, position)
    if row.cancel and not row.ended:
        fields["cancel_requested"] = True
    if row.status == "succeeded":
        fields["output"] = row.output
    if row.status == "failed":
        error = row.error or {}
        reason = error.get("reason")
        fields["error"] = {
            "reason": reason,
            "message": error.get("message"),
            **reason_links.link(docs_url, reason),
        }
    return fields
