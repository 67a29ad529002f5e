"""Owner references to Projects for objects created without one. Pure. Called by the decide functions."""

from controller.runtime.decision import Patch
from crds import names
from crds.kinds import Kind
from crds.objects import Object, Project


def adoption(kind: Kind, child: Object, project: Project | None) -> tuple[Patch, ...]:
    """Return the patch that adds the Project to a child's owners; empty if it is one or is being deleted."""
    if project is None or project.deleting or project.uid in child.owner_uids:
        return ()
    owners = [*(child.metadata.get("ownerReferences") or ()), reference(project)]
    return (Patch(kind, child.name, {"metadata": {"ownerReferences": owners}}, child.resource_version, None),)


def reference(project: Project) -> dict[str, object]:
    """Return the owner reference that deletes Deployments and Runs with their Project."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "Project",
        "name": project.name,
        "uid": project.uid,
        "blockOwnerDeletion": False,
    }
