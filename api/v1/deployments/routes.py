"""Deployments: made, listed, shown, rolled back to."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from api import errors
from api.http import pagination, responses
from api.http.operation import one, page
from api.http.query import Parameter
from api.openapi import examples, shapes
from api.routing.endpoint import Call, Endpoint
from api.store.blobs.direct_upload import arrived
from api.store.index.deployments import DeploymentRow
from api.store.index.projects import ProjectRow
from api.store.index.uploads import UploadRow
from api.v1 import idempotency, lookup, schemas
from api.v1.deployments import source, view
from crds import conditions, names, ulid
from crds.deployment_name import git_name
from crds.kinds import DEPLOYMENT
from crds.objects import Deployment
from kube import errors as kube_errors

FIRST_STATUS_SECONDS = 2.0
ROLLBACK_SECONDS = 5.0
MAX_ATTEMPTS = 100


async def _until(
    call: Call, row: DeploymentRow, good: Callable[[DeploymentRow], bool], seconds: float
) -> DeploymentRow:
    """The row once it is `good`, or as it is after `seconds`. Raises 404 where it is gone."""
    store, loop = call.services.store, asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        # The mark is older than the look, so that a change in between ends the wait at once.
        mark = store.deployments.mark()
        row = await lookup.deployment(call, names.id_of(row.name))
        left = end - loop.time()
        if good(row) or left <= 0:
            return row
        await store.deployments.wait(mark, left)


def _looked_at(row: DeploymentRow) -> bool:
    """Whether the controller has said anything yet."""
    ready = conditions.find(row.conditions, conditions.READY)
    return row.status != "pending" or (ready is not None and ready.get("reason") != "Pending")


async def create(call: Call) -> web.StreamResponse:
    """201 with the deployment, once the controller has looked at it."""
    body, services = call.body, call.services
    project = await lookup.named_project(call, body["project"], "project")
    if ("source" in body) == ("build_context_url" in body):
        raise errors.invalid("give exactly one of build_context_url and source", "build_context_url")
    use = idempotency.use(
        call.request.headers.get(idempotency.HEADER), call.caller.key_id, call.request.path, body
    )
    made = None if use is None else await services.store.idempotency.find(use, services.now())
    before = None if made is None else await services.store.deployments.get(made)
    if before is not None:
        row = before
    elif "source" in body:
        row = await _of_commit(call, project)
        if use is not None:
            await services.store.idempotency.put(use, row.name, services.now())
    else:
        found = source.of_upload(await _sent(call, project), project, services.now())
        name = f"{names.DEPLOYMENT_PREFIX}{ulid.new()}"
        if use is not None:
            name = await services.store.idempotency.put(use, name, services.now())
        row = await _made(call, project, name, view.spec(body, found))
    row = await _until(call, row, _looked_at, FIRST_STATUS_SECONDS)
    return responses.one(view.created(row), 201, f"/v1/deployments/{names.id_of(row.name)}")


async def _sent(call: Call, project: ProjectRow) -> UploadRow | None:
    """The archive that the body names, here; one of another server is fetched."""
    services, now = call.services, call.services.now()
    upload = source.upload_of(call.body, project, services.config.public_url)
    if upload is None:
        return await services.contexts.bring(call.body["build_context_url"], project.name, now)
    row = await services.store.uploads.get(upload)
    if row is None or row.project != project.name or services.config.signer is None:
        return row
    return await arrived(services.store.uploads, services.store.blobs, row, now)


async def _of_commit(call: Call, project: ProjectRow) -> DeploymentRow:
    """The deployment of a commit: the one there is, also the poll's; after a failed one the next attempt."""
    commit = call.body["source"]["git"]["commit"]
    spec = view.spec(call.body, source.of_commit(project, commit))
    spec = {**source.defaults_of_commit(project, commit), **spec}
    for attempt in range(1, MAX_ATTEMPTS + 1):
        name = git_name(project.uid, spec, attempt)
        row = await call.services.store.deployments.get(name)
        if row is None or (row.status != "failed" and await _gone(call, row)):
            return await _made(call, project, name, {**spec, "attempt": attempt})
        if row.status != "failed" and await _asked_for(call, row):
            return await lookup.deployment(call, names.id_of(name))
    raise errors.conflict(f"this commit was tried {MAX_ATTEMPTS} times; push another one")


async def _gone(call: Call, row: DeploymentRow) -> bool:
    """Whether its object was deleted, which the row may not know yet. It counts where nobody answers."""
    try:
        found = await call.services.kube.get(DEPLOYMENT, row.name)
    except kube_errors.KubeError:
        return False
    return found is None or found["metadata"]["uid"] != row.uid


async def _asked_for(call: Call, row: DeploymentRow) -> bool:
    """Sees to it that the deployment does not give way to a newer commit; False where it just did."""
    if row.status != "pending":
        return True
    change = {"metadata": {"uid": row.uid, "annotations": {names.ANNOTATION_POLLED: None}}}
    raw = await call.services.kube.patch(DEPLOYMENT, row.name, change)
    await call.services.store.deployments.observe(Deployment(raw))
    return not Deployment(raw).failed


async def _made(call: Call, project: ProjectRow, name: str, spec: Mapping[str, Any]) -> DeploymentRow:
    """The object of that name, made if it is not there, and its row."""
    services = call.services
    body = {
        "metadata": {
            "name": name,
            "labels": {names.LABEL_PROJECT: project.name},
            "ownerReferences": [
                {
                    "apiVersion": names.API_VERSION,
                    "kind": "Project",
                    "name": project.name,
                    "uid": project.uid,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": dict(spec),
    }
    try:
        raw: dict[str, Any] | None = await services.kube.create(DEPLOYMENT, body)
    except kube_errors.AlreadyExists:
        raw = await services.kube.get(DEPLOYMENT, name)
    if raw is None:
        raise errors.unavailable()
    await services.store.deployments.observe(Deployment(raw))
    return await lookup.deployment(call, names.id_of(name))


async def many(call: Call) -> web.StreamResponse:
    """The deployments of a project."""
    project = call.query["project"]
    call.caller.require_project(project, "project")
    asked, status = call.page, call.query["status"]
    found = await call.services.store.deployments.page(project, asked.offset, asked.size, status)
    return responses.page([view.item(row) for row in found.items], found.total, asked)


async def get(call: Call) -> web.StreamResponse:
    """One deployment."""
    row, services = await lookup.deployment(call), call.services
    position = await services.store.deployments.queue_position(row)
    config = services.config
    return responses.one(view.single(row, config.public_url, position, config.docs_url))


async def roll_back(call: Call) -> web.StreamResponse:
    """200, now active. Raises 409 for one that cannot be, 503 where that takes too long."""
    row = await lookup.deployment(call)
    if row.preview:
        raise errors.conflict("a preview never becomes active; run it by its id, or deploy its commit")
    if not row.built:
        raise errors.conflict(
            f"this deployment is {row.status} and was never built, so it cannot be rolled back to; "
            "choose one that is active or superseded"
        )
    raw = await call.services.kube.patch(DEPLOYMENT, row.name, {"spec": {"activation": row.activation + 1}})
    await call.services.store.deployments.observe(Deployment(raw))
    row = await _until(call, row, lambda now: now.status == "active", ROLLBACK_SECONDS)
    if row.status != "active":
        raise errors.unavailable(
            "the rollback is asked for, but not done yet; the same request again shows whether it is"
        )
    return responses.one(view.single(row, call.services.config.public_url))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/deployments",
        many,
        "read",
        remembers=True,
        query=(
            Parameter(
                "project",
                schemas.PROJECT_NAME,
                required=True,
                description="A project's name.",
                example=examples.PROJECT_NAME,
            ),
            Parameter("status", {"type": "string", "enum": schemas.DEPLOYMENT_STATUSES}),
            *pagination.PARAMETERS,
        ),
        summary="List deployments",
        answers=(page(shapes.DEPLOYMENT_ITEM, examples.DEPLOYMENT_ITEM),),
        refusals=(403,),
    ),
    Endpoint(
        "POST",
        "/v1/deployments",
        create,
        "deploy",
        body=schemas.DEPLOYMENT_CREATE,
        headers=(idempotency.PARAMETER,),
        summary="Create a deployment",
        answers=(one(shapes.DEPLOYMENT_CREATED, examples.DEPLOYMENT_CREATED, 201),),
        refusals=(404, 409),
        example=examples.DEPLOYMENT_CREATE,
    ),
    Endpoint(
        "GET",
        "/v1/deployments/{id}",
        get,
        "read",
        remembers=True,
        summary="Get a deployment",
        answers=(one(shapes.DEPLOYMENT, examples.DEPLOYMENT),),
    ),
    Endpoint(
        "POST",
        "/v1/deployments/{id}/rollback",
        roll_back,
        "deploy",
        summary="Roll back to a deployment",
        answers=(one(shapes.DEPLOYMENT, examples.DEPLOYMENT, description="It is active."),),
        refusals=(409,),
    ),
)
