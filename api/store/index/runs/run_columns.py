"""What a Run object says, as columns of its row, and what the end of a run looks like. Pure.

Called by `api.store.index.runs.run_writer`.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import JSON

from api.store.index.runs import inputs
from crds import conditions, names
from crds.json_depth import too_deep
from crds.objects import Run
from crds.reasons import STATUS_OF_PHASE
from crds.times import format_time, parse_time

DELETED = {"reason": "Deleted", "message": "the Run object was deleted before the run had ended"}
_TERMINAL = {"succeeded": "run.completed", "failed": "run.failed", "canceled": "run.canceled"}


def values(run: Run, started_at: datetime | None, now: datetime) -> dict[str, Any]:
    """The columns that follow the object. `started_at` is the claim's moment, which is more exact."""
    found: dict[str, Any] = {
        "uid": run.uid,
        "version": int(run.resource_version or 0),
        "status": STATUS_OF_PHASE.get(run.phase, "pending"),
        "cancel": run.cancel,
        "started_at": started_at or _moment(run.status.get("startTime")),
        "waiting": None if run.ended else waiting(run),
    }
    if run.deployment:
        found["deployment"] = run.deployment
    if run.project:
        found["project"] = run.project
    if run.ended:
        completed = _moment(run.status.get("completionTime")) or now
        found["completed_at"] = completed
        found["duration_ms"] = _duration(run, found["started_at"], completed)
        found["error"] = None if run.error is None else dict(run.error)
        found["output"] = output(run)
    return found


def first(run: Run, most: int) -> dict[str, Any]:
    """The columns of a row that never change, for a Run that was not made by the facade.

    Its input is JSON's null where the object does not give it, or gives more than `most` bytes.
    """
    given = inputs.held(run.spec, most)
    return {
        "created_at": run.created,
        "input": JSON.NULL if given is None else dict(given),
        "entrypoint": run.spec.get("entrypoint"),
        "timeout": run.spec.get("timeout"),
    }


def output(run: Run) -> Any:
    """What the crew returned; None where it returned nothing, or the text is no JSON that can be kept."""
    text = (run.result or {}).get("output")
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if too_deep(found) else found


def waiting(run: Run) -> dict[str, Any] | None:
    """Why a run has not started: it is queued, or what Succeeded says."""
    if run.phase != "Pending":
        return None
    admitted = conditions.find(run.conditions, conditions.ADMITTED)
    told = conditions.find(run.conditions, conditions.SUCCEEDED)
    condition = admitted if admitted and admitted.get("status") == "False" else told
    if condition is None:
        return None
    return {"reason": condition.get("reason"), "message": condition.get("message")}


def terminal(
    run: str,
    status: str,
    completed_at: datetime,
    duration_ms: int,
    output: Any,
    error: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The one terminal event, `{type, data}`."""
    data: dict[str, Any] = {
        "run_id": names.id_of(run),
        "timestamp": format_time(completed_at),
        "duration_ms": duration_ms,
    }
    if status == "succeeded":
        data["output"] = output
    elif status == "failed":
        data["error"] = dict(error or {"reason": "Failed", "message": ""})
    elif error:
        data["reason"] = error.get("reason")
    return {"type": _TERMINAL[status], "data": data}


def deleted(started_at: datetime | None, now: datetime) -> dict[str, Any]:
    """The columns of a run whose object went before its end."""
    return {
        "status": "canceled",
        "completed_at": now,
        "duration_ms": _millis(started_at, now),
        "error": DELETED,
        "output": None,
        "waiting": None,
    }


def _duration(run: Run, started_at: datetime | None, completed: datetime) -> int:
    told = run.status.get("durationMs")
    return int(told) if told is not None else _millis(started_at, completed)


def _millis(start: datetime | None, end: datetime) -> int:
    return 0 if start is None else max(0, int((end - start).total_seconds() * 1000))


def _moment(text: Any) -> datetime | None:
    return parse_time(text) if text else None
