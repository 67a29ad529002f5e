"""The start of a run for a request: its checks, and the response. Called by the routes that create runs."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from api import errors, tenant_limits
from api.budgets import month_use
from api.http import responses
from api.http.json_encoding import encode
from api.http.query import Parameter
from api.questions.declared_input import check_declared_input
from api.routing.endpoint import EndpointCall
from api.store.errors import StoreUnavailable
from api.store.index.audit.change import describe
from api.store.index.deployments.deployments import DeploymentRow
from api.store.index.idempotency import Idempotency
from api.store.index.runs.runs import RunDetail
from api.v1 import entrypoint, idempotency, lookup, wait
from api.v1.runs import create as run_creation
from api.v1.runs import view
from crds import durations, names
from crds.installation_limits import InstallationLimits
from crds.limits import CONFIG_BYTES
from crds.runs import budget, trace_context

QUEUE_RETRY_SECONDS = 10
TRACEPARENT = Parameter(
    trace_context.HEADER,
    {"type": "string"},
    description="The caller's span (W3C Trace Context), parent of the run's; ignored if it is not valid.",
)
Body = Mapping[str, Any]


def idempotency_use(call: EndpointCall) -> Idempotency | None:
    """Return the use of an idempotency key by this request, or None."""
    header = call.request.headers.get(idempotency.HEADER)
    return idempotency.parse_header(header, call.caller.key_id, call.request.path, call.body)


async def repeated(call: EndpointCall, use: Idempotency | None) -> web.Response | None:
    """Return the response to a request whose idempotency key has created a run, or None.

    It ignores changes since the first request, such as another active deployment or a full queue. A run whose
    object the first request could not create gets it.
    """
    services, now = call.services, call.services.now()
    name = None if use is None else await services.store.idempotency.find(use, now)
    row = None if name is None else await services.store.runs.get(name)
    if row is None or not call.caller.may(call.scope, row.project):
        return None
    if row.uid is None:
        describe(row.project, names.id_of(row.name))
        row = await run_creation.complete(
            services.store, services.kube, row, now, claims_not_before=services.config.claims_not_before
        )
    return await _created_response(call, row)


async def start(
    call: EndpointCall, body: Body, use: Idempotency | None, rerun_of: str | None = None
) -> web.Response:
    """Start the run that a body of POST /v1/runs describes, of checked sizes. After 201 it is stored durably.

    `rerun_of`: the object name of the run that it repeats.
    """
    services = call.services
    deployment = await _resolve_deployment(call, body["deployment"])
    entrypoint.check_scope(call, deployment.project, body.get("entrypoint"))
    entrypoint.check_name(deployment, body.get("entrypoint"))
    await check_declared_input(deployment.plan, body.get("entrypoint"), body.get("input", {}))
    await _check_budget(call, deployment)
    limits = await services.limits_of(deployment.project)
    check_timeout(call.body, limits)
    await _check_queue(call, deployment.project, limits.queue)
    services.store.volume.check_room()
    request = run_creation.RunRequest(
        project=deployment.project,
        deployment=deployment.name,
        input=body.get("input", {}),
        entrypoint=body.get("entrypoint"),
        timeout=body.get("timeout"),
        config=body.get("config"),
        context=body.get("context"),
        created_by=call.caller.principal,
        labels=body.get("labels"),
        rerun_of=rerun_of,
        traceparent=_traceparent(call),
    )
    row = await run_creation.create_run(services.store, services.kube, request, services.now(), use)
    return await _created_response(call, row)


def _traceparent(call: EndpointCall) -> str | None:
    """Return the caller's span; None if the request names none, or several, or an invalid one."""
    given = call.request.headers.getall(trace_context.HEADER, [])
    parent = trace_context.parse(given[0]) if len(given) == 1 else None
    return parent.text if parent else None


async def _created_response(call: EndpointCall, row: RunDetail) -> web.Response:
    config, identifier = call.services.config, names.id_of(row.name)
    location = f"/v1/runs/{identifier}"
    created = responses.item(view.created(row, config.public_url), 201, location)
    preferences = call.request.headers.getall(wait.PREFER_HEADER, ())
    seconds = wait.preferred_seconds(", ".join(preferences))
    if seconds is None:
        return created
    try:
        row = await wait_ended(call, identifier, seconds)
    except (errors.HttpApiError, StoreUnavailable):
        # The run exists: an error response would make the client start a second one.
        return created
    body = view.detail(row, config.public_url, config.prices, docs_url=config.docs_url)
    response = responses.item(body, 201, location)
    response.headers[wait.APPLIED_HEADER] = f"wait={seconds}"
    return response


async def wait_ended(call: EndpointCall, identifier: str, seconds: int) -> RunDetail:
    """Return the row of a run once it has ended, or after `seconds`."""
    events = call.services.store.events
    return await wait.until(
        call,
        seconds,
        lambda: lookup.run(call, identifier),
        lambda row: row.ended,
        lambda: events.mark,
        lambda mark, timeout: events.wait_state(names.name_of(identifier), mark, timeout),
    )


def check_sizes(call: EndpointCall, body: Body) -> None:
    """Raise 413 for a part that is too large."""
    limits = call.services.config.limits
    if len(encode(body.get("input", {}))) > limits.input_bytes:
        raise errors.HttpApiError(
            413,
            f"input is larger than {limits.input_bytes} bytes; pass a URL that the crew fetches",
            {"field": "input", "limit_bytes": limits.input_bytes},
        )
    for field in ("config", "context"):
        if len(encode(body.get(field, {}))) > CONFIG_BYTES:
            raise errors.HttpApiError(
                413,
                f"{field} is larger than {CONFIG_BYTES} bytes; put large values into input",
                {"field": field, "limit_bytes": CONFIG_BYTES},
            )


def check_timeout(body: Body, limits: InstallationLimits) -> None:
    """Raise 400 for too long a timeout in the body."""
    timeout, longest = body.get("timeout"), limits.run_max_seconds
    if timeout is not None and durations.seconds(timeout) > longest:
        raise errors.invalid(f"timeout must be at most {durations.text(longest)}", "timeout")


async def _resolve_deployment(call: EndpointCall, identifier: str) -> DeploymentRow:
    """Return the deployment with that id, or the active one of that project. Raises 403, 404, 409."""
    field = "deployment"
    if identifier.startswith("dep_") or await _is_deployment_name(call, identifier):
        row = await lookup.deployment(call, identifier, field)
        if row.status == "failed":
            error = row.error or {}
            raise errors.conflict(
                f"cannot run deployment {identifier}: it failed ({error.get('reason')}); deploy again",
                field=field,
            )
        return row
    call.caller.require_project(identifier, field, call.scope)
    deployments = call.services.store.deployments
    active = await deployments.active_of(identifier)
    if active is None:
        # Adds a project that the index lacks, or raises 404.
        await lookup.named_project(call, identifier, field)
        active = await deployments.active_of(identifier)
    if active is None:
        raise errors.conflict(
            f"project {identifier} has no active deployment yet; deploy to it, wait for its build, or pass a "
            "deployment id",
            field=field,
        )
    return active


async def _is_deployment_name(call: EndpointCall, identifier: str) -> bool:
    """Return whether this is a deployment as kubectl shows it (`dep-ab12`), and no project's name."""
    return (
        identifier.startswith(names.DEPLOYMENT_PREFIX)
        and await call.services.store.projects.get(identifier) is None
    )


async def _check_budget(call: EndpointCall, deployment: DeploymentRow) -> None:
    """Raise 409 if the project has used its budget for this month."""
    services, now, name = call.services, call.services.now(), deployment.project
    row = await services.store.projects.get(name) if deployment.budget else None
    if row is None:
        return
    use = await month_use(services.store, services.config.prices, row.uid, now)
    problem = budget.month_problem(row.as_object(), use, now)
    if problem is not None and problem.exceeded:
        services.metrics.limit_reached(tenant_limits.MONTH_BUDGET, name)
        raise errors.budget_exceeded(problem.message, name)


async def _check_queue(call: EndpointCall, project: str, max_queued: int) -> None:
    queued = (await call.services.store.runs.page(0, 0, project=project, statuses=["pending"])).total
    if queued >= max_queued:
        call.services.metrics.limit_reached(tenant_limits.QUEUE, project)
        message = (
            f"{queued} runs of the project {project} are already queued; try again after some have started"
        )
        raise errors.queue_full(message, project, max_queued, QUEUE_RETRY_SECONDS)
