"""`POST /internal/v1/runs/{run}/claim`: a pod asks for its run and gets it, or never does."""

import asyncio
import random
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from api.internal import lost_index
from api.internal.context import Refusal, Yard, body, number, text, token
from api.store.index.claims.claims import Asked, Denied, Granted, Unknown, Wait
from api.store.index.deployments import DeploymentRow
from api.store.index.runs.runs import RunDetail
from crds import names
from crds.installation_limits import Limits
from crds.kinds import DEPLOYMENT, POD, RUN
from crds.limits import run_timeout
from crds.objects import Deployment, Pod, Project, Run
from crds.reasons import RunReason
from crds.times import format_time
from kube import errors

PROTOCOLS = (1,)
AGAIN = (0.1, 0.5)
"""Seconds after which a pod asks again for a run whose project has no place free."""
LIVE_SECONDS = 3.0
"""Less than a pod waits for an answer (5 s)."""
OF_A_RUN = ("event_bytes", "log_lines", "artifacts", "artifact_bytes", "output_bytes")
"""The limits that a runner keeps, and is told with its run."""


async def claim(yard: Yard, request: web.Request) -> web.Response:
    """Answers granted, refused, or wait and 503, after which the pod asks again with the same nonce."""
    told = await _claim(yard, request)
    yard.claimed(told["state"])
    return web.json_response(told)


async def _claim(yard: Yard, request: web.Request) -> dict[str, Any]:
    run = request.match_info["run"]
    known = token(yard, request, "run", run)
    sent = await body(request)
    if number(sent, "protocol") not in PROTOCOLS:
        raise Refusal(400, f"protocol must be one of {PROTOCOLS}")
    asked = Asked(text(sent, "run_uid"), text(sent, "pod_uid"), text(sent, "nonce"))
    if asked.run_uid != known.uid:
        return _refused("the token is of another run")
    now = datetime.now(UTC)
    # What was decided before, and a pod that must wait, are answered from the rows alone.
    found = await yard.store.claims.ask(run, asked, None, now, yard.config.plans)
    if isinstance(found, Unknown):
        row, live = await asyncio.gather(yard.store.runs.get(run), _live(yard, run, asked))
        if live.cancel or live.ended:
            return _refused("the run was canceled" if live.cancel else "the run has ended")
        lost = await lost_index.refusal(yard, live, asked)
        if lost is not None:
            return _refused(lost)
        if row is None or row.uid is None or row.deployment is None:
            row = await _follow(yard, live, asked, now)
        answer = await _answer(yard, row, now)
        found = await yard.store.claims.ask(run, asked, answer, now, yard.config.plans)
    if isinstance(found, Denied):
        if found.nor_of_another:
            await _fail(yard, run, asked, found.reason)
        return _refused(found.reason)
    if isinstance(found, Wait):
        again = round(random.uniform(*AGAIN), 3)
        return {"state": "wait", "retry_after_seconds": again}
    if isinstance(found, Unknown):
        raise Refusal(503, "the run is not known yet; try again")
    # Also where it is told again: who made the grant may have broken off before it could say so.
    yard.store.events.turned(run)
    return _granted(found, yard.config.limits)


def _granted(found: Granted, limits: Limits) -> dict[str, Any]:
    return {
        "state": "granted",
        **found.answer,
        "input": dict(found.input),
        "started_at": format_time(found.granted_at),
        "limits": {name: getattr(limits, name) for name in OF_A_RUN},
    }


def _refused(reason: str) -> dict[str, Any]:
    return {"state": "refused", "reason": reason}


async def _fail(yard: Yard, run: str, asked: Asked, message: str) -> None:
    """The end of a run that no pod can have, as if the pod had reported it. Raises Unavailable: ask again."""
    result = {"outcome": "failed", "reason": RunReason.INPUT_TOO_LARGE, "message": message, "durationMs": 0}
    with suppress(errors.NotFound, errors.Conflict, errors.Invalid):
        # It is gone or ended, or says so already.
        await yard.kube.patch(
            RUN, run, {"metadata": {"uid": asked.run_uid}, "status": {"result": result}}, "status"
        )


async def _live(yard: Yard, run: str, asked: Asked) -> Run:
    """The object as etcd has it: a cancellation by kubectl counts before the watch has told of it.

    Raises Refusal: 404 where it is gone, 503 where the apiserver is slow; the pod asks again.
    """
    try:
        async with asyncio.timeout(LIVE_SECONDS):
            found = await yard.kube.get(RUN, run)
    except TimeoutError as error:
        raise Refusal(503, "the apiserver does not answer; try again") from error
    if found is None or found["metadata"]["uid"] != asked.run_uid or "deletionTimestamp" in found["metadata"]:
        raise Refusal(404, "there is no such run")
    return Run(found)


async def _follow(yard: Yard, live: Run, asked: Asked, now: datetime) -> RunDetail:
    """The row, brought to what the object says: the pod was faster than the watch."""
    await yard.store.record.observe(live, now)
    if live.deployment is None:
        await _resolve(yard, live.name, asked)
    row = await yard.store.runs.get(live.name)
    if row is None:
        raise Refusal(404, "the run was taken back")
    return row


async def _resolve(yard: Yard, run: str, asked: Asked) -> None:
    """Nothing is recorded yet: what the pod was made for counts, which only the controller says."""
    found = await yard.kube.get(POD, run)
    if found is None:
        return
    pod = Pod(found)
    deployment = pod.labels.get(names.LABEL_DEPLOYMENT)
    if deployment and pod.uid == asked.pod_uid and asked.run_uid in pod.owner_uids:
        project = pod.labels.get(names.LABEL_PROJECT, "")
        await yard.store.record.resolve(run, asked.run_uid, project, deployment)


async def _answer(yard: Yard, row: RunDetail, now: datetime) -> dict[str, Any]:
    if row.deployment is None:
        raise Refusal(503, "the run has no deployment yet; try again")
    deployment = await _deployment(yard, row.deployment)
    project = await yard.store.projects.get(row.project)
    seconds = run_timeout(
        Run({"spec": {"timeout": row.timeout}}),
        Deployment({"status": {"plan": deployment.plan}}),
        Project({"spec": project.spec}) if project else None,
        yard.config.limits,
    )
    return {
        "entrypoint": row.entrypoint or deployment.plan.get("entrypoint"),
        "framework": deployment.plan.get("framework"),
        "timeout_seconds": seconds,
        "deployment_id": names.id_of(row.deployment),
    }


async def _deployment(yard: Yard, name: str) -> DeploymentRow:
    row = await yard.store.deployments.get(name)
    if row is None or not row.plan.get("entrypoint"):
        found = await yard.kube.get(DEPLOYMENT, name)
        if found is not None:
            await yard.store.deployments.observe(Deployment(found))
            row = await yard.store.deployments.get(name)
    if row is None or not row.plan.get("entrypoint"):
        raise Refusal(503, f"the deployment {name} has no plan yet; try again")
    return row
