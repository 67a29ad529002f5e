"""`POST /internal/v1/runs/{run}/result`: write the outcome of the crew to its Run, then respond.

Called by `api.internal.routes`.
"""

import json
from typing import Any

from aiohttp import web

from api.internal import status_outbox
from api.internal.context import (
    InternalContext,
    PodApiError,
    authenticate_object,
    int_field,
    read_json,
    text_field,
)
from api.internal.events import RUN_NOT_HELD
from api.tenant_limits import RUN_BUDGET
from crds.json_depth import MAX_STORED_DEPTH, too_deep
from crds.reasons import RunReason

OUTCOMES = ("succeeded", "failed", "stopped")
WRITE_TIMEOUT_SECONDS = 20.0
"""Seconds that the response waits for the apiserver; then the runner retries."""
MAX_REASON_LENGTH = 64
MAX_MESSAGE_LENGTH = 4096


async def report_result(context: InternalContext, request: web.Request) -> web.Response:
    """Respond 200 once `Run.status.result` is written, 425 if acknowledged data is missing."""
    run = request.match_info["run"]
    authenticate_object(context, request, "run", run)
    body = await read_json(request)
    status = status_result(body, context.config.limits.output_bytes)
    with status_outbox.reserved(context.store, run):
        await _record_and_deliver(context, run, body, status)
    if status.get("reason") == RunReason.BUDGET_EXCEEDED:
        context.on_limit(RUN_BUDGET, await context.store.project_storage.project_of(run) or "")
    return web.json_response({})


async def _record_and_deliver(
    context: InternalContext, run: str, body: dict[str, Any], status: dict[str, Any]
) -> None:
    pod, nonce = text_field(body, "pod_uid"), text_field(body, "nonce")
    if await context.store.claims.holds(run, pod, nonce):
        missing = await _missing(context, run, body)
        if missing:
            raise PodApiError(
                425, "acknowledged events or artifacts are missing; send them again", missing=missing
            )
        written = await context.store.claims.record_result(run, pod, nonce, status)
    else:
        # After the run ended, only confirm the result that was recorded before.
        claim = await context.store.claims.get(run)
        same = claim is not None and claim.result == status
        written = await context.store.claims.record_result(run, pod, nonce, status) if same else None
    if written is None:
        raise PodApiError(409, RUN_NOT_HELD)
    if not written and not await status_outbox.deliver_until(
        context.store, context.kube, run, WRITE_TIMEOUT_SECONDS
    ):
        raise PodApiError(503, "the result is stored but not written to the Run yet; try again")


def status_result(body: dict[str, Any], max_output_bytes: int) -> dict[str, Any]:
    """Return `Run.status.result` for a request body, cut to the limits of the CRD schema.

    `max_output_bytes` limits the output. Raises PodApiError 400.
    """
    if body.get("outcome") not in OUTCOMES:
        raise PodApiError(400, f"outcome must be one of {', '.join(OUTCOMES)}")
    artifacts = _artifacts(body)
    status: dict[str, Any] = {
        "outcome": body["outcome"],
        "durationMs": int_field(body, "duration_ms"),
        "artifacts": {"count": int_field(artifacts, "count"), "bytes": int_field(artifacts, "bytes")},
    }
    for field, length in (("reason", MAX_REASON_LENGTH), ("message", MAX_MESSAGE_LENGTH)):
        if body.get(field) is not None:
            status[field] = str(body[field])[:length]
    if body.get("output") is not None:
        if too_deep(body["output"]):
            raise PodApiError(
                400, f"output is nested more than {MAX_STORED_DEPTH} levels deep; send an artifact"
            )
        output = json.dumps(body["output"], ensure_ascii=False, separators=(",", ":"))
        if len(output.encode(errors="replace")) > max_output_bytes:
            raise PodApiError(400, f"output is larger than {max_output_bytes} bytes; send an artifact")
        status["output"] = output
    return status


def _artifacts(body: dict[str, Any]) -> dict[str, Any]:
    artifacts = body.get("artifacts")
    if not isinstance(artifacts, dict):
        raise PodApiError(400, "artifacts must be an object with count and bytes")
    return artifacts


async def _missing(context: InternalContext, run: str, body: dict[str, Any]) -> dict[str, Any]:
    last = int_field(body, "last_event")
    count = int_field(_artifacts(body), "count")
    missing: dict[str, Any] = {}
    seq = await context.store.events.seq(run)
    # On a full volume only the end of the run is stored.
    if seq < last and context.store.volume.has_room():
        missing["events"] = {"stored": seq, "expected": last}
    usage = await context.store.artifacts.totals(run)
    if usage.count < count:
        missing["artifacts"] = {"stored": usage.count, "expected": count}
    return missing
