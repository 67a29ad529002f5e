"""Owner references of objects that the controller creates or adopts. Pure. Called by the decide functions."""

from typing import Any

from controller.runtime.decision import Patch
from crds import kinds, names
from crds.kinds import Kind
from crds.objects import Object, Project
from crds.times import parse_time


def adoption(kind: Kind, child: Object, project: Project | None) -> tuple[Patch, ...]:
    """Return the patch that adds the Project to a child's owners, and its label if the child has none.

    Empty if it is one, or owns the child through a Deployment; also if an earlier Project of its name is one,
    with which the child is deleted. Empty for a child older than the deletion of the Project, which may
    orphan it.
    """
    if project is None or project.uid in child.owner_uids or child.owner_uid(kinds.PROJECT) is not None:
        return ()
    if project.deleting and child.created < parse_time(str(project.metadata["deletionTimestamp"])):
        return ()
    if child.owner_uid(kinds.DEPLOYMENT) is not None:
        return ()
    owners = [*(child.metadata.get("ownerReferences") or ()), reference(kinds.PROJECT, project)]
    metadata: dict[str, Any] = {"ownerReferences": owners}
    if names.LABEL_PROJECT not in child.labels:
        # The API sets it on what it creates; this one was made with kubectl.
        metadata["labels"] = {names.LABEL_PROJECT: project.name}
    return (Patch(kind, child.name, {"metadata": metadata}, child.resource_version, None),)


def belongs_to(child: Object, project: Project) -> bool:
    """Return whether no earlier Project of the same name owns a child, which is deleted with that."""
    return child.owner_uid(kinds.PROJECT) in (None, project.uid)


def reference(kind: Kind, owner: Object) -> dict[str, Any]:
    """Return the owner reference that deletes an object with its owner."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": owner.name,
        "uid": owner.uid,
        "blockOwnerDeletion": False,
    }


def controller_reference(kind: Kind, owner: Object) -> dict[str, Any]:
    """Return the owner reference of a pod to the object that decides about it."""
    return {**reference(kind, owner), "controller": True}
