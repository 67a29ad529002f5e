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

    `change` returns a merge patch of the spec. The kube-apiserver gets the whole spec: of a merge patch it
    drops the nulls, also those in the input of a schedule. The row may be older than the object. Raises 404
    if the project was deleted, and what `change` raises.
    """
    services, kube = call.services, call.services.kube.at(row.object_namespace)

    async def write() -> Project:
        manifest = await kube.get(PROJECT, row.name)
        if manifest is None or manifest["metadata"]["uid"] != row.uid:
            raise errors.not_found(f"the project {row.name} was deleted meanwhile")
        spec = change(Project(manifest))
        if spec is None:
            return Project(manifest)
        fields = {
            "/metadata/uid": row.uid,
            "/metadata/resourceVersion": manifest["metadata"]["resourceVersion"],
            "/spec": merged(manifest.get("spec"), spec),
        }
        patch = [{"op": "add", "path": path, "value": value} for path, value in fields.items()]
        changed = Project(await kube.patch(PROJECT, row.name, patch))
        await services.store.projects.observe(changed)
        return changed

    return await conflicts.repeated(write)


def merged(current: Any, patch: Any) -> Any:
    """Return a value with a merge patch (RFC 7386); a list in it is taken as it is, with its nulls."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(current) if isinstance(current, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result
