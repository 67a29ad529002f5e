"""The Project as owner of what kubectl users made without one. Pure; called by the decide functions."""

from controller.runtime.decision import Patch
from crds import names
from crds.kinds import Kind
from crds.objects import Object, Project


def adoption(kind: Kind, child: Object, project: Project | None) -> tuple[Patch, ...]:
    """The patch that adds the Project to a child's owners; none where it is one, or is going."""
    if project is None or project.deleting or project.uid in child.owner_uids:
        return ()
    owners = [*(child.metadata.get("ownerReferences") or ()), reference(project)]
    return (Patch(kind, child.name, {"metadata": {"ownerReferences": owners}}, child.resource_version, None),)


def reference(project: Project) -> dict[str, object]:
    """The Project as an owner: with it, its Deployments and Runs go."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "Project",
        "name": project.name,
        "uid": project.uid,
        "blockOwnerDeletion": False,
    }
