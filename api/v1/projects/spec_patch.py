"""Patch of a Project's spec, decided on the version that it changes.

Called by the routes of projects and of schedules.
"""

from collections.abc import Callable, Mapping
from typing import Any

from api import errors
from api.routing.endpoint import EndpointCall
from api.store.index.projects import ProjectRow
from api.v1 import conflicts
from crds.kinds import PROJECT
from crds.objects import Project


async def patch_spec(
    call: EndpointCall, row: ProjectRow, change: Callable[[Project], Mapping[str, Any] | None]
) -> Project:
    """Patch exactly the version that `change` saw, and record it; None from `change` writes nothing.

    The row may be older than the object. Raises 404 if the project was deleted, and what `change` raises.
    """
    services, kube = call.services, call.services.kube.at(row.object_namespace)

    async def write() -> Project:
        manifest = await kube.get(PROJECT, row.name)
        if manifest is None or manifest["metadata"]["uid"] != row.uid:
            raise errors.not_found(f"the project {row.name} was deleted meanwhile")
        spec = change(Project(manifest))
        if spec is None:
            return Project(manifest)
        version = {"uid": row.uid, "resourceVersion": manifest["metadata"]["resourceVersion"]}
        changed = Project(await kube.patch(PROJECT, row.name, {"metadata": version, "spec": spec}))
        await services.store.projects.observe(changed)
        return changed

    return await conflicts.repeated(write)
