"""`POST /internal/v1/runs/{run}/claim`: grant the run to one pod, deny it, or let the pod wait.

Called by `api.internal.routes`.
"""

import asyncio
import random
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from api.errors import HttpApiError
from api.internal import restored_index, storage
from api.internal.context import (
    InternalContext,
    PodApiError,
    authenticate_object,
    int_field,
    read_json,
    text_field,
)
from api.internal.run_pod import find_pod
from api.prices import Prices
from api.questions.declared_input import check_declared_input
from api.store.index.claims.claims import (
    Claimable,
    ClaimDenied,
    ClaimGranted,
    ClaimRequest,
    ClaimUnknown,
    ClaimWait,
)
from api.store.index.deployments.deployments import DeploymentRow
from api.store.index.runs.runs import RunDetail
from crds import entrypoints, names
from crds.installation_limits import InstallationLimits
from crds.kinds import DEPLOYMENT, RUN
from crds.limits import ask_timeout, run_timeout
from crds.objects import Deployment, Project, Run
from crds.reasons import RunReason
from crds.runs import trace_context
from crds.runs.budget import run_limits
from crds.teams.namespaces import place_of
from crds.times import format_time
from kube import errors
from kube.client import KubeClient

PROTOCOLS = (1,)
RETRY_SECONDS_RANGE = (0.1, 0.5)
"""Range of `retry_after_seconds` for a run whose project has no free run slot."""
LIVE_READ_TIMEOUT_SECONDS = 3.0
"""Less than the response timeout of a pod (5 s)."""
RUNNER_LIMITS = ("event_bytes", "log_lines", "artifacts", "artifact_bytes", "output_bytes")
"""The limits that a runner enforces; sent with the grant."""


async def claim(context: InternalContext, request: web.Request) -> web.Response:
    """Respond with granted, refused or wait. After wait or 503 the pod retries with the same nonce."""
    decision = await _claim(context, request)
    context.on_claim(decision["state"])
    return web.json_response(decision)


async def _claim(context: InternalContext, request: web.Request) -> dict[str, Any]:
    run = request.match_info["run"]
    token = authenticate_object(context, request, "run", run)
    body = await read_json(request)
    if int_field(body, "protocol") not in PROTOCOLS:
        raise PodApiError(400, f"protocol must be one of {PROTOCOLS}")
    claim_request = ClaimRequest(
        text_field(body, "run_uid"), text_field(body, "pod_uid"), text_field(body, "nonce")
    )
    if claim_request.run_uid != token.uid:
        return _refused("the token belongs to another run")
    now = datetime.now(UTC)
    # Earlier decisions and waiting pods need only the rows, no apiserver call.
    decision = await context.store.claims.peek(run, claim_request, context.config.plans)
    if isinstance(decision, Claimable | ClaimUnknown):
        kube = context.kube_of(token)
        live = await _live_run(kube, run, claim_request)
        if live.cancel or live.ended:
            return _refused("the run was canceled" if live.cancel else "the run has ended")
        denial = await restored_index.denial_reason(context, kube, live, claim_request)
        if denial is not None:
            return _refused(denial)
        row: RunDetail | Claimable
        if isinstance(decision, Claimable) and decision.deployment is not None:
            row = decision
        else:
            row = await _sync_row(context, kube, live, claim_request, now)
        deployment = await _planned_deployment(context, kube, row)
        if (problem := await _input_problem(deployment, row)) is not None:
            await _fail(kube, run, claim_request, RunReason.INPUT_INVALID, problem)
            return _refused(problem)
        grant = await _grant_body(context, row, deployment, claim_request.run_uid)
        decision = await context.store.claims.grant(run, claim_request, grant, now, context.config.plans)
    if isinstance(decision, ClaimDenied):
        if decision.unclaimable:
            kube = context.kube_of(token)
            await _fail(kube, run, claim_request, RunReason.INPUT_TOO_LARGE, decision.reason)
        return _refused(decision.reason)
    if isinstance(decision, ClaimWait):
        retry_after = round(random.uniform(*RETRY_SECONDS_RANGE), 3)
        return {"state": "wait", "retry_after_seconds": retry_after}
    if isinstance(decision, ClaimUnknown):
        raise PodApiError(503, "the index has not recorded the run yet; try again")
    # Also for a repeated grant: the call that made it may have failed before notifying.
    context.store.events.notify_state_changed(run)
    return _granted(decision, await storage.limits_of(context, run))


def _granted(granted: ClaimGranted, limits: InstallationLimits) -> dict[str, Any]:
    return {
        "state": "granted",
        **granted.response,
        "input": dict(granted.input),
        "started_at": format_time(granted.granted_at),
        "limits": {name: getattr(limits, name) for name in RUNNER_LIMITS},
    }


def _refused(reason: str) -> dict[str, Any]:
    return {"state": "refused", "reason": reason}


async def _input_problem(deployment: DeploymentRow, row: RunDetail | Claimable) -> str | None:
    """Return what is wrong with the input of a run that the API did not create, in the API's words."""
    if row.input is None:
        return None
    try:
        await check_declared_input(deployment.plan, row.entrypoint, row.input)
    except HttpApiError as error:
        return error.message
    return None


async def _fail(
    kube: KubeClient, run: str, claim_request: ClaimRequest, reason: RunReason, message: str
) -> None:
    """Write the failed result of a run that no pod can claim. Raises Unavailable: the pod retries."""
    result = {"outcome": "failed", "reason": reason, "message": message, "durationMs": 0}
    with suppress(errors.KubeNotFound, errors.KubeConflict, errors.Invalid):
        # The object is deleted, has ended, or already has the result.
        await kube.patch(
            RUN, run, {"metadata": {"uid": claim_request.run_uid}, "status": {"result": result}}, "status"
        )


async def _live_run(kube: KubeClient, run: str, claim_request: ClaimRequest) -> Run:
    """Read the Run from the apiserver: a cancellation by kubectl counts before the watch reports it.

    Raises PodApiError: 404 if the object is deleted, 503 if the apiserver is slow; the pod retries.
    """
    try:
        async with asyncio.timeout(LIVE_READ_TIMEOUT_SECONDS):
            manifest = await kube.get(RUN, run)
    except TimeoutError as error:
        raise PodApiError(503, "the apiserver does not respond; try again") from error
    if (
        manifest is None
        or manifest["metadata"]["uid"] != claim_request.run_uid
        or "deletionTimestamp" in manifest["metadata"]
    ):
        raise PodApiError(404, "run not found")
    return Run(manifest)


async def _sync_row(
    context: InternalContext, kube: KubeClient, live: Run, claim_request: ClaimRequest, now: datetime
) -> RunDetail:
    """Update the row from the object and return it: the pod was faster than the watch."""
    await context.store.run_writer.observe(live, now)
    if live.deployment is None:
        await _resolve_from_pod(context, kube, live.name, claim_request)
    row = await context.store.runs.get(live.name)
    if row is None:
        raise PodApiError(404, "the run was withdrawn")
    return row


async def _resolve_from_pod(
    context: InternalContext, kube: KubeClient, run: str, claim_request: ClaimRequest
) -> None:
    """Record the deployment from the pod's labels, which only the controller writes, if none is recorded."""
    pod = await find_pod(kube, run, claim_request.pod_uid)
    if pod is None:
        return
    deployment = pod.labels.get(names.LABEL_DEPLOYMENT)
    if deployment and claim_request.run_uid in pod.owner_uids:
        project = pod.labels.get(names.LABEL_PROJECT, "")
        await context.store.run_writer.set_deployment(run, claim_request.run_uid, project, deployment)


async def _grant_body(
    context: InternalContext, row: RunDetail | Claimable, deployment: DeploymentRow, uid: str
) -> dict[str, Any]:
    exported = context.config.telemetry is not None
    traceparent = trace_context.crew_context(row.traceparent, uid, exported)
    project_row = await context.store.projects.get(row.project)
    project = project_row.as_object() if project_row else None
    limits = context.config.limits_of(project.plan) if project else context.config.limits
    seconds = run_timeout(
        Run({"spec": {"timeout": row.timeout}}),
        Deployment({"status": {"plan": deployment.plan}}),
        project,
        limits,
    )
    return {
        "entrypoint": entrypoints.target(row.entrypoint, deployment.plan),
        "framework": deployment.plan.get("framework"),
        "timeout_seconds": seconds,
        "ask_seconds": ask_timeout(project, limits),
        "deployment_id": names.id_of(deployment.name),
        **{name: value for name in ("config", "context") if (value := getattr(row, name)) is not None},
        **({"budget": budget} if (budget := _budget(project, context.config.prices)) else {}),
        **({"traceparent": traceparent} if traceparent else {}),
        **({"artifacts": include} if (include := deployment.plan.get("artifacts")) else {}),
    }


def _budget(project: Project | None, prices: Prices | None) -> dict[str, Any]:
    """Return the budget of one run, with the prices if it limits cost; a limit of cost needs prices."""
    limits = run_limits(project) if project else {}
    budget = {name: limits[name] for name in ("tokens", "cost") if limits.get(name) is not None}
    if "cost" in budget and prices is None:
        del budget["cost"]
    return {**budget, "prices": prices.as_json()} if "cost" in budget and prices else budget


async def _planned_deployment(
    context: InternalContext, kube: KubeClient, run: RunDetail | Claimable
) -> DeploymentRow:
    """Return the run's deployment, of the client's namespace."""
    name = run.deployment
    if name is None:
        raise PodApiError(503, "the run has no deployment yet; try again")
    row = await context.store.deployments.get(name)
    if row is None or not row.plan.get("entrypoint"):
        manifest = await kube.get(DEPLOYMENT, name)
        if manifest is not None:
            await context.store.deployments.observe(Deployment(manifest))
            row = await context.store.deployments.get(name)
    place = place_of(kube.namespace, context.config.namespace)
    if row is None or row.object_namespace != place or not row.plan.get("entrypoint"):
        raise PodApiError(503, f"the deployment {name} has no plan yet; try again")
    return row
