"""Erasure of a deployment: marks the object; the controller deletes its image, then the object.

The object is the only record of its image. A marked object has no row: it cannot be read, run or activated.
"""

from aiohttp import web

from api import errors
from api.routing.endpoint import EndpointCall
from api.v1 import lookup
from crds.kinds import DEPLOYMENT, PROJECT
from crds.names import ANNOTATION_ERASED
from crds.objects import Deployment, Project
from crds.times import format_time


async def erase(call: EndpointCall) -> web.StreamResponse:
    """Erase a deployment with its image. 409 while it is being built, active or needed by runs."""
    row, services = await lookup.deployment(call), call.services
    kube = services.kube.at(row.object_namespace)
    manifest = await kube.get(DEPLOYMENT, row.name)
    if manifest is None or manifest["metadata"]["uid"] != row.uid:
        await services.store.deployments.remove(row.name, row.uid)
        return web.Response(status=204)
    live = Deployment(manifest)
    project = await kube.get(PROJECT, row.project)
    obstacle = find_obstacle(live, Project(project or {}))
    if obstacle is not None:
        raise errors.conflict(obstacle, status=row.status)
    for status in ("pending", "running"):
        runs = await services.store.runs.page(0, 0, deployment=row.name, statuses=[status])
        if runs.total:
            message = f"the deployment has {status} runs ({runs.total}); wait for their end or cancel them"
            raise errors.conflict(message, status=row.status)
    # An activation meanwhile changes the version.
    patch = {
        "uid": live.uid,
        "resourceVersion": live.resource_version,
        "annotations": {ANNOTATION_ERASED: format_time(services.now())},
    }
    marked = await kube.patch(DEPLOYMENT, row.name, {"metadata": patch})
    await services.store.deployments.observe(Deployment(marked))
    return web.Response(status=204)


def find_obstacle(deployment: Deployment, project: Project) -> str | None:
    """Return why a deployment cannot be erased, with the next step; None if it can."""
    if not (deployment.built or deployment.failed):
        return "the deployment is not built yet; cancel it first"
    if not deployment.unused or project.active == deployment.name:
        return "the deployment is active or becomes active; roll back to another one first"
    commit = (deployment.spec["source"].get("git") or {}).get("commit")
    head = (project.status.get("source") or {}).get("commit")
    if head is not None and commit == head and not deployment.preview:
        return (
            "this is the commit that the project follows, so it would be built again; "
            "push another commit or change the project's source first"
        )
    return None
