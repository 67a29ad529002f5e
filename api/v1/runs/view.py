"""Run rows as JSON. Pure. Called by the routes of runs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from api.prices import Prices
from api.store.index.runs.input_requests import InputRequest
from api.store.index.runs.runs import RunDetail, RunRow
from api.store.index.usage import used_by
from api.v1 import reason_links
from api.v1.model_usage import by_model
from api.v1.timestamps import timestamp
from api.v1.waiting import waiting
from crds import names
from crds.runs import trace_context


def item(row: RunRow, prices: Prices | None) -> dict[str, Any]:
    """Return a run as a list item; `smoke` only for the smoke run of a deployment."""
    smoke = {"smoke": True} if names.is_smoke_run(row.name) else {}
    return {
        **smoke,
        "id": names.id_of(row.name),
        "deployment_id": names.id_of(row.deployment) if row.deployment else None,
        "project": row.project,
        "status": row.status,
        "created_at": timestamp(row.created_at),
        "completed_at": timestamp(row.completed_at),
        "duration_ms": row.duration_ms,
        "labels": dict(row.labels or {}),
        "usage": usage(row, prices),
    }


def usage(row: RunRow, prices: Prices | None) -> dict[str, Any] | None:
    """Return what a run used, and its cost without the build of its image; None until it is accounted."""
    used = used_by(row)
    if used is None:
        return None
    return {
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "artifact_bytes": used.artifact_bytes,
        "cost": prices.cost(used) if prices else None,
        "currency": prices.currency if prices else None,
        "models": by_model(used.models, prices),
    }


def created(row: RunDetail, public_url: str) -> dict[str, Any]:
    """Return a run as the response to its creation."""
    fields = item(row, None)
    return {
        **{key: fields[key] for key in ("id", "status", "created_at", "deployment_id", "project", "labels")},
        "trace_id": trace_context.trace_id(row.traceparent, row.uid) if row.uid else None,
        "input": row.input or {},
        "events_url": f"{public_url}/v1/runs/{fields['id']}/events",
    }


def detail(
    row: RunDetail,
    public_url: str,
    prices: Prices | None,
    position: int | None = None,
    docs_url: str = "",
    questions: Sequence[InputRequest] = (),
) -> dict[str, Any]:
    """Return a run with all fields: `output` only if it succeeded, `error` only if it failed.

    `queue_position` only while it waits for a run slot, from 1; `waiting` only until it has started,
    and while it asks open `questions`; `cancel_requested` only until it has ended.
    """
    fields = {**item(row, prices), **created(row, public_url), "started_at": timestamp(row.started_at)}
    fields["created_by"] = row.created_by
    fields |= {"entrypoint": row.entrypoint, "timeout": row.timeout}
    fields["rerun_of"] = names.id_of(row.rerun_of) if row.rerun_of else None
    if position is not None:
        fields["queue_position"] = position
    if row.status == "pending" and row.waiting:
        fields["waiting"] = waiting(row.waiting, row.created_at, position)
    if row.status == "running" and questions:
        fields["waiting"] = {
            "reason": "WaitingForInput",
            "message": f"The crew asks: {questions[0].prompt}",
            "since": timestamp(questions[0].created_at),
        }
        fields["input_requests"] = [input_request(item) for item in questions]
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


def input_request(request: InputRequest) -> dict[str, Any]:
    """Return an open question; `schema` and `choices` only if it has them."""
    fields: dict[str, Any] = {"request_id": request.id, "prompt": request.prompt}
    if request.schema is not None:
        fields["schema"] = request.schema
    if request.choices is not None:
        fields["choices"] = request.choices
    return {
        **fields,
        "created_at": timestamp(request.created_at),
        "expires_at": timestamp(request.expires_at),
    }


def answered(request: InputRequest, now: datetime, by: str) -> dict[str, Any]:
    """Return the response to an answer."""
    return {"request_id": request.id, "received_at": timestamp(now), "by": by}
