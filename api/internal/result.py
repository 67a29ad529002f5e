"""`POST /internal/v1/runs/{run}/result`: how the crew ended, answered once its object says so."""

import json
from typing import Any

from aiohttp import web

from api.internal.context import Refusal, Yard, body, number, text, token
from api.internal.events import NOT_YOURS
from api.v1.runs import status_outbox
from crds.json_depth import DEEPEST, too_deep

OUTCOMES = ("succeeded", "failed", "stopped")
PATIENCE = 20.0
"""Seconds that the answer waits for the apiserver; then the runner asks again."""
MAX_REASON = 64
MAX_MESSAGE = 4096


async def result(yard: Yard, request: web.Request) -> web.Response:
    """200 once `Run.status.result` is written; 425 where something acknowledged is missing."""
    run = request.match_info["run"]
    token(yard, request, "run", run)
    sent = await body(request)
    pod, nonce = text(sent, "pod_uid"), text(sent, "nonce")
    found = status_result(sent, yard.config.limits.output_bytes)
    if await yard.store.claims.holds(run, pod, nonce):
        missing = await _missing(yard, run, sent)
        if missing:
            raise Refusal(425, "something acknowledged is not there; send it again", missing=missing)
        written = await yard.store.claims.report(run, pod, nonce, found)
    else:
        # After the end only what was recorded before is confirmed.
        claim = await yard.store.claims.get(run)
        same = claim is not None and claim.result == found
        written = await yard.store.claims.report(run, pod, nonce, found) if same else None
    if written is None:
        raise Refusal(409, NOT_YOURS)
    if not written and not await status_outbox.deliver_until(yard.store, yard.kube, run, PATIENCE):
        raise Refusal(503, "the result is kept but not in its object yet; try again")
    return web.json_response({})


def status_result(sent: dict[str, Any], most: int) -> dict[str, Any]:
    """`Run.status.result` of what the runner sent, cut to what the schema takes. Raises Refusal 400.

    `most` is how many bytes an output may have.
    """
    if sent.get("outcome") not in OUTCOMES:
        raise Refusal(400, f"outcome must be one of {', '.join(OUTCOMES)}")
    held = _artifacts(sent)
    found: dict[str, Any] = {
        "outcome": sent["outcome"],
        "durationMs": number(sent, "duration_ms"),
        "artifacts": {"count": number(held, "count"), "bytes": number(held, "bytes")},
    }
    for field, length in (("reason", MAX_REASON), ("message", MAX_MESSAGE)):
        if sent.get(field) is not None:
            found[field] = str(sent[field])[:length]
    if sent.get("output") is not None:
        if too_deep(sent["output"]):
            raise Refusal(400, f"output is nested in more than {DEEPEST} levels; send an artifact")
        output = json.dumps(sent["output"], ensure_ascii=False, separators=(",", ":"))
        if len(output.encode(errors="replace")) > most:
            raise Refusal(400, f"output is larger than {most} bytes; send an artifact")
        found["output"] = output
    return found


def _artifacts(sent: dict[str, Any]) -> dict[str, Any]:
    held = sent.get("artifacts")
    if not isinstance(held, dict):
        raise Refusal(400, "artifacts must be an object with count and bytes")
    return held


async def _missing(yard: Yard, run: str, sent: dict[str, Any]) -> dict[str, Any]:
    last = number(sent, "last_event")
    count = number(_artifacts(sent), "count")
    missing: dict[str, Any] = {}
    seq = await yard.store.events.seq(run)
    if seq < last:
        missing["events"] = {"stored": seq, "expected": last}
    held = await yard.store.artifacts.held(run)
    if held.count < count:
        missing["artifacts"] = {"stored": held.count, "expected": count}
    return missing
