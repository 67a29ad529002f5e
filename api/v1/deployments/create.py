"""`POST /v1/deployments`: a Deployment object from an upload, an archive of another server, or a commit."""

import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from api import errors, tenant_limits
from api.http import responses
from api.routing.endpoint import EndpointCall
from api.store import ulid
from api.store.blobs.direct_upload import import_upload
from api.store.index.audit.change import describe
from api.store.index.deployments.deployments import DeploymentRow
from api.store.index.projects import ProjectRow
from api.store.index.uploads import UploadRow
from api.v1 import idempotency, lookup
from api.v1.deployments import source, view
from api.v1.deployments.status_wait import wait_until
from api.v1.uploads import limits
from crds import conditions, names
from crds.deployment_name import git_name
from crds.kinds import DEPLOYMENT
from crds.objects import Deployment
from kube import errors as kube_errors

FIRST_STATUS_TIMEOUT_SECONDS = 2.0
MAX_ATTEMPTS = 100
QUEUE_RETRY_SECONDS = 30


async def create(call: EndpointCall) -> web.StreamResponse:
    """Create a deployment and wait briefly for its first status.

    A preview needs the scope preview, any other one deploy.
    """
    body, services = call.body, call.services
    project = await lookup.named_project(call, body["project"], "project")
    if "preview" not in body:
        call.caller.require("deploy", project.name)
    if ("source" in body) == ("build_context_url" in body):
        raise errors.invalid("set exactly one of build_context_url and source", "build_context_url")
    idempotency_key = idempotency.parse_header(
        call.request.headers.get(idempotency.HEADER), call.caller.key_id, call.request.path, body
    )
    existing_name = (
        None
        if idempotency_key is None
        else await services.store.idempotency.find(idempotency_key, services.now())
    )
    existing = None if existing_name is None else await services.store.deployments.get(existing_name)
    if existing is not None:
        row = existing
    elif "source" in body:
        row = await _create_from_commit(call, project)
        if idempotency_key is not None:
            await services.store.idempotency.put(idempotency_key, row.name, services.now())
    else:
        name = f"{names.DEPLOYMENT_PREFIX}{ulid.new()}"
        describe(project.name, names.id_of(name))
        resolved_source = await _upload_source(call, project)
        if idempotency_key is not None:
            name = await services.store.idempotency.put(idempotency_key, name, services.now())
        row = await _ensure_object(call, project, name, view.spec(body, resolved_source))
    row = await wait_until(call, row, _is_observed, FIRST_STATUS_TIMEOUT_SECONDS)
    return responses.item(view.created(row), 201, f"/v1/deployments/{names.id_of(row.name)}")


async def _check_limits(call: EndpointCall, project: ProjectRow) -> None:
    """Raise 429 if too many deployments of the project wait for their build, or came in this minute."""
    limit = call.services.config.limits_of(project.as_object().plan).deployment_queue
    waiting = (await call.services.store.deployments.page(project.name, 0, 0, "pending")).total
    if waiting >= limit:
        call.services.metrics.limit_reached(tenant_limits.DEPLOYMENT_QUEUE, project.name)
        message = (
            f"{waiting} deployments of the project {project.name} already wait for their build; try again "
            "after some have started"
        )
        raise errors.queue_full(message, project.name, limit, QUEUE_RETRY_SECONDS)
    most = call.services.config.plans.of(project.as_object().plan).deployments_of_project
    allowance = await call.services.limiter.count(f"deployments:{project.name}", most)
    if allowance.exceeded:
        call.services.metrics.limit_reached(tenant_limits.DEPLOYMENTS, project.name)
        raise allowance.error(time.time(), f"project {project.name} got ", "deployments")


async def _upload_source(call: EndpointCall, project: ProjectRow) -> dict[str, Any]:
    """Return the source for the upload that the body names; fetch the archive if it is on another server.

    A refused deployment counts for the limits only if it names another server, or if the check copies bytes.
    """
    services, now, is_counted = call.services, call.services.now(), False

    async def count() -> None:
        nonlocal is_counted
        if not is_counted:
            await _check_limits(call, project)
        is_counted = True

    upload = source.upload_id(call.body, project, services.config.public_url)
    if upload is None:
        await count()
        with limits.counting_refusals(call, project.name):
            row: UploadRow | None = await services.context_fetcher.fetch_as_upload(
                call.body["build_context_url"],
                project.name,
                now,
                lambda size: limits.check_storage(call, project.name, size),
            )
    else:
        row = await services.store.uploads.get(upload)
        if row is not None and row.project == project.name and services.config.signer is not None:
            row = await import_upload(services.store.uploads, services.store.blobs, row, now, count)
    found = source.upload_source(row, project, now)
    await count()
    return found


async def _create_from_commit(call: EndpointCall, project: ProjectRow) -> DeploymentRow:
    """Return the deployment of a commit, also one created by polling; after a failure, a new attempt.

    An attempt without a message has that of the one before, such as the commit's subject.
    """
    commit = call.body["source"]["git"]["commit"]
    spec = view.spec(call.body, source.commit_source(project, commit))
    spec = {**source.commit_spec_defaults(project, commit), **spec}
    for attempt in range(1, MAX_ATTEMPTS + 1):
        name = git_name(project.uid, spec, attempt)
        describe(project.name, names.id_of(name))
        row = await call.services.store.deployments.get(name)
        if row is None or (row.status != "failed" and await _is_object_deleted(call, row)):
            await _check_limits(call, project)
            return await _ensure_object(call, project, name, {**spec, "attempt": attempt})
        if row.status != "failed" and await _keep(call, row):
            return await lookup.deployment(call, names.id_of(name))
        if row.message is not None:
            spec.setdefault("message", row.message)
    raise errors.conflict(f"deploying this commit failed {MAX_ATTEMPTS} times; push another commit")


async def _is_object_deleted(call: EndpointCall, row: DeploymentRow) -> bool:
    """Return whether the object was deleted, which the row may not show yet. False if the apiserver fails."""
    try:
        manifest = await call.services.kube.at(row.object_namespace).get(DEPLOYMENT, row.name)
    except kube_errors.KubeError:
        return False
    return manifest is None or manifest["metadata"]["uid"] != row.uid


async def _keep(call: EndpointCall, row: DeploymentRow) -> bool:
    """Keep the deployment although a newer commit comes, or although its pull request was closed before.

    Return False if it is already superseded or being deleted.
    """
    removed = [names.ANNOTATION_POLLED] if row.status == "pending" else []
    if row.preview:
        removed.append(names.ANNOTATION_CLOSED)
    if not removed:
        return True
    patch = {"metadata": {"uid": row.uid, "annotations": dict.fromkeys(removed)}}
    manifest = await call.services.kube.at(row.object_namespace).patch(DEPLOYMENT, row.name, patch)
    deployment = Deployment(manifest)
    await call.services.store.deployments.observe(deployment)
    return not (deployment.failed or deployment.deleting)


async def _ensure_object(
    call: EndpointCall, project: ProjectRow, name: str, spec: Mapping[str, Any]
) -> DeploymentRow:
    """Create the object of that name if it does not exist and return its row."""
    services, kube = call.services, call.services.kube.at(project.object_namespace)
    body = {
        "metadata": {
            "name": name,
            "labels": {names.LABEL_PROJECT: project.name},
            "annotations": view.annotations(call.caller, spec, services.config.token_key),
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
        manifest: dict[str, Any] | None = await kube.create(DEPLOYMENT, body)
    except kube_errors.AlreadyExists:
        manifest = await kube.get(DEPLOYMENT, name)
    if manifest is None:
        raise errors.unavailable()
    if Deployment(manifest).erased:
        raise errors.conflict("this deployment is being erased; repeat the request in a few minutes")
    await services.store.deployments.observe(Deployment(manifest))
    return await lookup.deployment(call, names.id_of(name))


def _is_observed(row: DeploymentRow) -> bool:
    """Return whether the controller has reported a status."""
    ready = conditions.find(row.conditions, conditions.READY)
    return row.status != "pending" or (ready is not None and ready.get("reason") != "Pending")
