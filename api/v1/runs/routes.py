"""Runs: started, listed, shown, cancelled."""

from aiohttp import web

from api import errors
from api.http import operation, pagination, responses
from api.http.json_encoding import encode
from api.http.query import Parameter
from api.openapi import examples, shapes
from api.routing.endpoint import Call, Endpoint
from api.store.index.deployments import DeploymentRow
from api.store.index.runs.runs import RunDetail
from api.v1 import idempotency, lookup, schemas
from api.v1.runs import create as accept
from api.v1.runs import view
from crds import durations, names
from crds.kinds import RUN
from crds.objects import Run
from kube import errors as kube_errors

QUEUE_RETRY_SECONDS = 10


async def create(call: Call) -> web.StreamResponse:
    """201 with the run, accepted for good."""
    _check_sizes(call)
    use = idempotency.use(
        call.request.headers.get(idempotency.HEADER), call.caller.key_id, call.request.path, call.body
    )
    services = call.services
    made = None if use is None else await services.store.idempotency.find(use, services.now())
    row = None if made is None else await services.store.runs.get(made)
    if row is not None and row.uid is not None and call.caller.may(call.scope, row.project):
        # Asked before: what may have changed since (another active deployment, a full queue) is no matter.
        return _created(call, row)
    deployment = await _deployment(call)
    _check_entrypoint(call, deployment.project)
    await _check_queue(call, deployment.project)
    request = accept.RunRequest(
        project=deployment.project,
        deployment=deployment.name,
        input=call.body.get("input", {}),
        entrypoint=call.body.get("entrypoint"),
        timeout=call.body.get("timeout"),
    )
    return _created(
        call, await accept.accept_run(services.store, services.kube, request, services.now(), use)
    )


def _created(call: Call, row: RunDetail) -> web.Response:
    shown = view.created(row, call.services.config.public_url)
    return responses.one(shown, 201, f"/v1/runs/{shown['id']}")


def _check_sizes(call: Call) -> None:
    limits = call.services.config.limits
    if len(encode(call.body.get("input", {}))) > limits.input_bytes:
        raise errors.ApiError(
            413,
            f"input is larger than {limits.input_bytes} bytes; give the crew an address to fetch it from",
            {"field": "input", "limit_bytes": limits.input_bytes},
        )
    timeout = call.body.get("timeout")
    if timeout is not None and durations.seconds(timeout) > limits.run_max_seconds:
        raise errors.invalid(f"timeout must be at most {durations.text(limits.run_max_seconds)}", "timeout")


async def _deployment(call: Call) -> DeploymentRow:
    """What `deployment` names: a deployment, or a project's active one. Raises 403, 404, 409."""
    field, given = "deployment", call.body["deployment"]
    if given.startswith("dep_"):
        row = await lookup.deployment(call, given, field)
        if row.status == "failed":
            error = row.error or {}
            raise errors.conflict(
                f"the deployment {given} failed ({error.get('reason')}) and cannot be run; deploy again",
                field=field,
            )
        return row
    project = await lookup.named_project(call, given, field)
    active = await call.services.store.deployments.get(project.active) if project.active else None
    if active is None:
        raise errors.conflict(
            f"the project {given} has no active deployment yet; wait for its build, or name a deployment",
            field=field,
        )
    return active


def _check_entrypoint(call: Call, project: str) -> None:
    """Raises the 403 for an entrypoint of their own choice from somebody who may not deploy.

    Whatever can be imported can be named, `os:environ.copy` too: it is code, and sees all variables.
    """
    if call.body.get("entrypoint") is not None and not call.caller.may("deploy", project):
        raise errors.forbidden(
            "entrypoint needs the scope deploy; leave it out, or use a key that has it",
            field="entrypoint",
            required_scope="deploy",
        )


async def _check_queue(call: Call, project: str) -> None:
    most = call.services.config.limits.queue
    waiting = (await call.services.store.runs.page(0, 0, project=project, status="pending")).total
    if waiting >= most:
        raise errors.ApiError(
            429,
            f"{waiting} runs of the project {project} are waiting already; try again when some have started",
            {"project": project, "limit": most},
            {"Retry-After": str(QUEUE_RETRY_SECONDS)},
            code="queue_full",
        )


async def many(call: Call) -> web.StreamResponse:
    """Runs, by project, deployment and status."""
    query, page = call.query, call.page
    if query["project"] is not None:
        call.caller.require_project(query["project"], "project")
    found = await call.services.store.runs.page(
        page.offset,
        page.size,
        project=query["project"],
        deployment=names.name_of(query["deployment"]) if query["deployment"] else None,
        status=query["status"],
        projects=call.caller.projects,
    )
    return responses.page([view.item(row) for row in found.items], found.total, page)


async def get(call: Call) -> web.StreamResponse:
    """One run, and where it stands in its project's queue."""
    row, services = await lookup.run(call), call.services
    position = await services.store.places.position(row, services.config.plans)
    return responses.one(view.single(row, services.config.public_url, position, services.config.docs_url))


async def cancel(call: Call) -> web.StreamResponse:
    """202: it will be canceled; 200 if it is already. Raises 409 for a run that ended otherwise."""
    row = await lookup.run(call)
    if not row.ended:
        try:
            wish = {"metadata": {"uid": row.uid}, "spec": {"cancel": True}}
            raw = await call.services.kube.patch(RUN, row.name, wish)
        except (kube_errors.Invalid, kube_errors.NotFound):
            # It ended in between, or is gone; the row says so as soon as its end is recorded.
            row = await lookup.run(call)
            if not row.ended:
                raise errors.unavailable("the run is ending; the same request again shows how") from None
        else:
            # Known here before it is answered: a pod that asks for the run from now on is refused.
            await call.services.store.record.observe(Run(raw), call.services.now())
            return responses.one(view.single(await lookup.run(call), call.services.config.public_url), 202)
    if row.status != "canceled":
        raise errors.conflict(f"the run has {row.status} already", status=row.status)
    return responses.one(view.single(row, call.services.config.public_url))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/runs",
        many,
        "read",
        remembers=True,
        query=(
            Parameter("project", schemas.PROJECT_NAME, description="A project's name."),
            Parameter("deployment", schemas.DEPLOYMENT_ID, description="A deployment's id."),
            Parameter("status", {"type": "string", "enum": schemas.RUN_STATUSES}),
            *pagination.PARAMETERS,
        ),
        summary="List runs",
        answers=(operation.page(shapes.RUN_ITEM, examples.RUN_ITEM),),
        refusals=(403,),
    ),
    Endpoint(
        "POST",
        "/v1/runs",
        create,
        "run",
        body=schemas.RUN_CREATE,
        headers=(idempotency.PARAMETER,),
        summary="Start a run",
        answers=(operation.one(shapes.RUN_CREATED, examples.RUN_CREATED, 201),),
        refusals=(404, 409),
        example=examples.RUN_CREATE,
    ),
    Endpoint(
        "GET",
        "/v1/runs/{id}",
        get,
        "read",
        remembers=True,
        summary="Get a run",
        answers=(operation.one(shapes.RUN, examples.RUN),),
    ),
    Endpoint(
        "POST",
        "/v1/runs/{id}/cancel",
        cancel,
        "run",
        summary="Cancel a run",
        answers=(
            operation.one(shapes.RUN, examples.RUN, description="It is canceled already."),
            operation.one(shapes.RUN, examples.RUN, 202, "It will be canceled."),
        ),
        refusals=(409,),
    ),
)
