"""Routes of runs: create, list, get, cancel."""

from dataclasses import replace

from aiohttp import web

from api import errors, tenant_limits
from api.http import operation, pagination, responses
from api.http.json_encoding import encode
from api.http.query import Parameter
from api.routing.endpoint import Endpoint, EndpointCall
from api.store.index.deployments import DeploymentRow
from api.store.index.runs.runs import RunDetail
from api.v1 import idempotency, lookup, wait
from api.v1.fields import DEPLOYMENT_ID, PROJECT_NAME
from api.v1.runs import create as run_creation
from api.v1.runs import schema, view
from crds import durations, entrypoints, names
from crds.kinds import RUN
from crds.limits import CONFIG_BYTES
from crds.objects import Run
from kube import errors as kube_errors

QUEUE_RETRY_SECONDS = 10


async def create(call: EndpointCall) -> web.StreamResponse:
    """Create a run. After 201 the run is stored durably."""
    _check_sizes(call)
    idempotency_key = idempotency.parse_header(
        call.request.headers.get(idempotency.HEADER), call.caller.key_id, call.request.path, call.body
    )
    services = call.services
    existing_name = (
        None
        if idempotency_key is None
        else await services.store.idempotency.find(idempotency_key, services.now())
    )
    row = None if existing_name is None else await services.store.runs.get(existing_name)
    if row is not None and row.uid is not None and call.caller.may(call.scope, row.project):
        # A repeated request: ignore changes since the first one (active deployment, full queue).
        return await _created_response(call, row)
    deployment = await _resolve_deployment(call)
    _check_entrypoint(call, deployment)
    await _check_queue(call, deployment.project)
    services.store.volume.check_room()
    request = run_creation.RunRequest(
        project=deployment.project,
        deployment=deployment.name,
        input=call.body.get("input", {}),
        entrypoint=call.body.get("entrypoint"),
        timeout=call.body.get("timeout"),
        config=call.body.get("config"),
        context=call.body.get("context"),
        created_by=call.caller.principal,
    )
    row = await run_creation.create_run(
        services.store, services.kube, request, services.now(), idempotency_key
    )
    return await _created_response(call, row)


async def _created_response(call: EndpointCall, row: RunDetail) -> web.Response:
    config, identifier = call.services.config, names.id_of(row.name)
    seconds = wait.preferred_seconds(call.request.headers.get(wait.PREFER_HEADER))
    if seconds is None:
        return responses.item(view.created(row, config.public_url), 201, f"/v1/runs/{identifier}")
    row = await _wait_ended(call, identifier, seconds)
    body = view.detail(row, config.public_url, docs_url=config.docs_url)
    response = responses.item(body, 201, f"/v1/runs/{identifier}")
    response.headers[wait.APPLIED_HEADER] = f"wait={seconds}"
    return response


async def _wait_ended(call: EndpointCall, identifier: str, seconds: int) -> RunDetail:
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


def _check_sizes(call: EndpointCall) -> None:
    limits = call.services.config.limits
    if len(encode(call.body.get("input", {}))) > limits.input_bytes:
        raise errors.HttpApiError(
            413,
            f"input is larger than {limits.input_bytes} bytes; pass a URL that the crew fetches",
            {"field": "input", "limit_bytes": limits.input_bytes},
        )
    for field in ("config", "context"):
        if len(encode(call.body.get(field, {}))) > CONFIG_BYTES:
            raise errors.HttpApiError(
                413,
                f"{field} is larger than {CONFIG_BYTES} bytes; put large values into input",
                {"field": field, "limit_bytes": CONFIG_BYTES},
            )
    timeout = call.body.get("timeout")
    if timeout is not None and durations.seconds(timeout) > limits.run_max_seconds:
        raise errors.invalid(f"timeout must be at most {durations.text(limits.run_max_seconds)}", "timeout")


async def _resolve_deployment(call: EndpointCall) -> DeploymentRow:
    """Return the deployment with that id, or the active one of that project. Raises 403, 404, 409."""
    field, identifier = "deployment", call.body["deployment"]
    if identifier.startswith("dep_") or await _is_deployment_name(call, identifier):
        row = await lookup.deployment(call, identifier, field)
        if row.status == "failed":
            error = row.error or {}
            raise errors.conflict(
                f"cannot run deployment {identifier}: it failed ({error.get('reason')}); deploy again",
                field=field,
            )
        return row
    project = await lookup.named_project(call, identifier, field)
    active = await call.services.store.deployments.get(project.active) if project.active else None
    if active is None:
        raise errors.conflict(
            f"project {identifier} has no active deployment yet; wait for its build, or pass a deployment id",
            field=field,
        )
    return active


async def _is_deployment_name(call: EndpointCall, identifier: str) -> bool:
    """Return whether this is a deployment as kubectl shows it (`dep-ab12`), and no project's name."""
    return (
        identifier.startswith(names.DEPLOYMENT_PREFIX)
        and await call.services.store.projects.get(identifier) is None
    )


def _check_entrypoint(call: EndpointCall, deployment: DeploymentRow) -> None:
    """Raise 403 for an entrypoint other than a name from a caller without the scope deploy, 400 for no name.

    An entrypoint can be any importable object, also `os:environ.copy`: it is code and sees all variables.
    A name only selects an entrypoint of the deployment's own configuration.
    """
    requested = call.body.get("entrypoint")
    if requested is None:
        return
    if not entrypoints.is_name(requested) and not call.caller.may("deploy", deployment.project):
        raise errors.forbidden(
            "an entrypoint other than a name of the deployment's configuration needs the scope deploy; leave "
            "it out, or use a key that has it",
            field="entrypoint",
            required_scope="deploy",
        )
    if problem := entrypoints.problem(requested, deployment.plan):
        raise errors.invalid(f"deployment {names.id_of(deployment.name)} {problem}", "entrypoint")


async def _check_queue(call: EndpointCall, project: str) -> None:
    max_queued = call.services.config.limits.queue
    queued = (await call.services.store.runs.page(0, 0, project=project, status="pending")).total
    if queued >= max_queued:
        call.services.metrics.limit_reached(tenant_limits.QUEUE, project)
        message = (
            f"{queued} runs of the project {project} are already queued; try again after some have started"
        )
        raise errors.queue_full(message, project, max_queued, QUEUE_RETRY_SECONDS)


async def list_runs(call: EndpointCall) -> web.StreamResponse:
    """List runs, filtered by project, deployment and status."""
    query, page = call.query, call.page
    if query["project"] is not None:
        call.caller.require_project(query["project"], "project")
    result = await call.services.store.runs.page(
        page.offset,
        page.size,
        project=query["project"],
        deployment=names.name_of(query["deployment"]) if query["deployment"] else None,
        status=query["status"],
        projects=call.caller.projects,
    )
    return responses.page([view.item(row) for row in result.items], result.total, page)


async def get(call: EndpointCall) -> web.StreamResponse:
    """Get a run, with its position in its project's queue and its open questions."""
    row, services = await _wait_ended(call, call.path("id"), call.query["wait"] or 0), call.services
    position = await services.store.run_slots.queue_position(row, services.config.plans)
    questions = await services.store.input_requests.open_of(row, services.now())
    return responses.item(
        view.detail(row, services.config.public_url, position, services.config.docs_url, questions)
    )


async def cancel(call: EndpointCall) -> web.StreamResponse:
    """Cancel a run. 200 if it is already canceled, 409 if it has succeeded or failed."""
    row = await lookup.run(call)
    if not row.ended:
        try:
            patch = {"metadata": {"uid": row.uid}, "spec": {"cancel": True}}
            raw = await call.services.kube.patch(RUN, row.name, patch)
        except (kube_errors.Invalid, kube_errors.KubeNotFound):
            # The run ended meanwhile or was deleted; the row shows it once the end is recorded.
            row = await lookup.run(call)
            if not row.ended:
                raise errors.unavailable("the run is ending; repeat the request to see its outcome") from None
        else:
            # Record the cancellation before responding: later claims of pods are denied.
            await call.services.store.run_writer.observe(Run(raw), call.services.now())
            return responses.item(view.detail(await lookup.run(call), call.services.config.public_url), 202)
    if row.status != "canceled":
        raise errors.conflict(f"the run has already {row.status}", status=row.status)
    return responses.item(view.detail(row, call.services.config.public_url))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/runs",
        list_runs,
        "read",
        cacheable=True,
        query=(
            Parameter("project", PROJECT_NAME, description="A project's name."),
            Parameter("deployment", DEPLOYMENT_ID, description="A deployment's id."),
            Parameter("status", {"type": "string", "enum": schema.STATUSES}),
            *pagination.PAGE_PARAMETERS,
        ),
        summary="List runs",
        responses=(operation.page_response(schema.ITEM, schema.ITEM_EXAMPLE),),
        error_statuses=(403,),
    ),
    Endpoint(
        "POST",
        "/v1/runs",
        create,
        "run",
        body=schema.CREATE,
        headers=(idempotency.PARAMETER, wait.PREFER),
        summary="Start a run",
        responses=(
            replace(
                operation.item_response(schema.CREATED, schema.CREATED_EXAMPLE, 201),
                optional_headers=(wait.APPLIED_HEADER,),
            ),
        ),
        error_statuses=(404, 409),
        example=schema.CREATE_EXAMPLE,
    ),
    Endpoint(
        "GET",
        "/v1/runs/{id}",
        get,
        "read",
        cacheable=True,
        query=(wait.WAIT,),
        summary="Get a run",
        responses=(operation.item_response(schema.DETAIL, schema.EXAMPLE),),
    ),
    Endpoint(
        "POST",
        "/v1/runs/{id}/cancel",
        cancel,
        "run",
        summary="Cancel a run",
        responses=(
            operation.item_response(
                schema.DETAIL, schema.EXAMPLE, description="The run is already canceled."
            ),
            operation.item_response(schema.DETAIL, schema.EXAMPLE, 202, "The run will be canceled."),
        ),
        error_statuses=(409,),
    ),
)
