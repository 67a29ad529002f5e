"""Patch of a Project's spec, decided on the version that it changes.

Called by the routes of projects and of schedules.
"""

from collections.abc import Callable, Mapping
from typing import Any

from api import errors
from api.routing.endpoint import EndpointCall
from api.store.index.projects import ProjectRow
from crds.kinds import PROJECT
from crds.objects import Project
from kube import errors as kube_errors

MAX_WRITE_ATTEMPTS = 8
"""The controller writes the status meanwhile, which changes the version too."""


async def patch_spec(
    call: EndpointCall, row: ProjectRow, change: Callable[[Project], Mapping[str, Any] | None]
) -> Project:
    """Patch exactly the version that `change` saw, and record it; None from `change` writes nothing.

    The row may be older than the object. Raises 404 if the project was deleted, and what `change` raises.
    """
    services, kube = call.services, call.services.kube.at(row.object_namespace)
    for attempt in range(1, MAX_WRITE_ATTEMPTS + 1):
        manifest = await kube.get(PROJECT, row.name)
        if manifest is None or manifest["metadata"]["uid"] != row.uid:
            raise errors.not_found(f"the project {row.name} was deleted meanwhile")
        spec = change(Project(manifest))
        if spec is None:
            return Project(manifest)
        version = {"uid": row.uid, "resourceVersion": manifest["metadata"]["resourceVersion"]}
        try:
            changed = await kube.patch(PROJECT, row.name, {"metadata": version, "spec": spec})
        except kube_errors.KubeConflict:
            if attempt == MAX_WRITE_ATTEMPTS:
                raise
            continue
        await services.store.projects.observe(Project(changed))
        return Project(changed)
    raise AssertionError("unreachable")
