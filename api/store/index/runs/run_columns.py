"""Columns of a run's row from its object, and the terminal event. Pure.

Called by `api.store.index.runs.run_writer`.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import JSON

from api.store.index.runs import inputs
from crds import conditions, names
from crds.json_depth import too_deep
from crds.limits import CONFIG_BYTES
from crds.objects import Run
from crds.reasons import STATUS_OF_PHASE
from crds.runs import trace_context
from crds.times import format_time, parse_time

DELETED = {"reason": "Deleted", "message": "the Run object was deleted before the run had ended"}
_RUN_NAME = re.compile(r"run-[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)
_TERMINAL = {"succeeded": "run.completed", "failed": "run.failed", "canceled": "run.canceled"}


def observed_columns(run: Run, started_at: datetime | None, now: datetime) -> dict[str, Any]:
    """Return the columns that follow the object. `started_at` is the claim's time, which is more exact."""
    columns: dict[str, Any] = {
        "uid": run.uid,
        "version": int(run.resource_version or 0),
        "status": STATUS_OF_PHASE.get(run.phase, "pending"),
        "cancel": run.cancel,
        "started_at": started_at or _moment(run.status.get("startTime")),
        "waiting": None if run.ended else waiting_reason(run),
    }
    admitted = conditions.find(run.conditions, conditions.ADMITTED)
    if admitted and admitted.get("status") == "True":
        columns["admitted_at"] = _moment(admitted.get("lastTransitionTime"))
    if run.deployment:
        columns["deployment"] = run.deployment
    if run.project:
        columns["project"] = run.project
    if run.ended:
        completed = _moment(run.status.get("completionTime")) or now
        columns["completed_at"] = completed
        columns["duration_ms"] = _duration(run, columns["started_at"], completed)
        columns["error"] = None if run.error is None else dict(run.error)
        columns["output"] = output(run)
    return columns


def initial_columns(run: Run, max_input_bytes: int) -> dict[str, Any]:
    """Return the columns that never change, for a Run that another client created.

    Its input is JSON null if the object does not give it, or gives more than `max_input_bytes`; likewise if
    config or context are larger than a run may have.
    """
    value = inputs.inline_input(run.spec, max_input_bytes)
    settings = {name: run.spec.get(name) for name in ("config", "context")}
    if any(given is not None and inputs.above_limit(given, CONFIG_BYTES) for given in settings.values()):
        value, settings = None, {}
    return {
        "created_at": run.created,
        "created_by": run.created_by,
        "input": JSON.NULL if value is None else dict(value),
        "entrypoint": run.spec.get("entrypoint"),
        "timeout": run.spec.get("timeout"),
        "rerun_of": _rerun_of(run),
        "traceparent": _traceparent(run),
        **settings,
    }


def _rerun_of(run: Run) -> str | None:
    name = run.annotations.get(names.ANNOTATION_RERUN_OF, "")
    return name if _RUN_NAME.fullmatch(name) and len(name) <= names.MAX_NAME else None


def _traceparent(run: Run) -> str | None:
    given = trace_context.parse(run.annotations.get(names.ANNOTATION_TRACEPARENT))
    return given.text if given else None


def output(run: Run) -> Any:
    """Return the crew's result; None if there is none, or its text is not JSON that can be stored."""
    text = (run.result or {}).get("output")
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if too_deep(value) else value


def waiting_reason(run: Run) -> dict[str, Any] | None:
    """Return why a run has not started: the condition Admitted if it is queued, else Succeeded."""
    if run.phase != "Pending":
        return None
    admitted = conditions.find(run.conditions, conditions.ADMITTED)
    succeeded = conditions.find(run.conditions, conditions.SUCCEEDED)
    condition = admitted if admitted and admitted.get("status") == "False" else succeeded
    if condition is None:
        return None
    return {
        "reason": condition.get("reason"),
        "message": condition.get("message"),
        "since": condition.get("lastTransitionTime"),
    }


def terminal_event(
    run: str,
    status: str,
    completed_at: datetime,
    duration_ms: int,
    output: Any,
    error: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the terminal event, `{type, data}`."""
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


def deleted_columns(started_at: datetime | None, now: datetime) -> dict[str, Any]:
    """Return the columns of a run whose object was deleted before its end."""
    return {
        "status": "canceled",
        "completed_at": now,
        "duration_ms": _millis(started_at, now),
        "error": DELETED,
        "output": None,
        "waiting": None,
    }


def _duration(run: Run, started_at: datetime | None, completed: datetime) -> int:
    reported = run.status.get("durationMs")
    return int(reported) if reported is not None else _millis(started_at, completed)


def _millis(start: datetime | None, end: datetime) -> int:
    return 0 if start is None else max(0, int((end - start).total_seconds() * 1000))


def _moment(text: Any) -> datetime | None:
    return parse_time(text) if text else None
