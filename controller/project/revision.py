"""What the head of a repository asks for: a Deployment to create, and whether it has moved. Pure.

"Moved" is against `status.source`, the last head acted upon, and means another
tree below `path` or another crew of it: a refused tree does not come back by a
commit outside `path`, nor by another change of the Project.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controller.owner import reference
from controller.runtime.decision import Create
from controller.source.observed import Look
from crds import kinds
from crds.deployment_name import git_name
from crds.names import ANNOTATION_POLLED, ANNOTATION_REQUESTED_AT
from crds.objects import Deployment, Project
from crds.times import parse_time

MAX_ATTEMPTS = 100


@dataclass(frozen=True)
class Head:
    """`create` is the Deployment that is missing; else `deployment` is the head's latest one, if any.

    `moved` asks for a new order for it; `source` is what to record then.
    """

    create: Create | None = None
    deployment: Deployment | None = None
    moved: bool = False
    source: Mapping[str, str | None] | None = None


def wanted_spec(project: Project, look: Look) -> dict[str, Any]:
    """The spec of the Deployment of a head, but for its attempt."""
    git = project.git or {}
    source: dict[str, Any] = {"url": git["url"], "commit": look.commit}
    if git.get("path"):
        source["path"] = git["path"]
    spec: dict[str, Any] = {"project": project.name, "source": {"git": source}, "gitSha": look.commit}
    if git.get("crew"):
        spec["crew"] = git["crew"]
    if look.subject:
        spec["message"] = look.subject
    return spec


def judge(project: Project, deployments: Sequence[Deployment], look: Look) -> Head:
    """What the head that `look` found asks for."""
    spec = wanted_spec(project, look)
    by_name = {deployment.name: deployment for deployment in deployments}
    latest, attempt = None, 0
    while attempt < MAX_ATTEMPTS and (found := by_name.get(git_name(project.uid, spec, attempt + 1))):
        latest, attempt = found, attempt + 1
    recorded = project.status.get("source") or {}
    crew = (project.git or {}).get("crew")
    source = {"commit": look.commit, "tree": look.tree, "crew": crew}
    moved = recorded.get("tree") != look.tree or recorded.get("crew") != crew
    if attempt >= MAX_ATTEMPTS:
        # One more would not be counted, and so be made again and again.
        return Head(deployment=latest, moved=moved, source=source)
    if moved:
        if latest is None or (latest.failed and latest.order > 0) or _returning(latest, recorded, look):
            return Head(create=_create(project, spec, attempt + 1, look), moved=True, source=source)
        return Head(deployment=latest, moved=True, source=source)
    if latest is not None and latest.failed and _requested_since(look.requested_at, latest):
        return Head(create=_create(project, spec, attempt + 1, look), source=source)
    return Head(deployment=latest, source=source)


def _returning(latest: Deployment, recorded: Mapping[str, Any], look: Look) -> bool:
    """Whether the head comes back to a commit whose Deployment failed before it was ordered."""
    return latest.failed and recorded.get("commit") not in (None, look.commit)


def recorded_deployment(project: Project, deployments: Sequence[Deployment]) -> Deployment | None:
    """The latest Deployment of the head that `status.source` records, or None."""
    recorded, git = project.status.get("source") or {}, project.git
    if git is None or not recorded.get("commit"):
        return None
    source = {"url": git["url"], "commit": recorded["commit"], "path": git.get("path") or ""}
    found = [
        deployment
        for deployment in deployments
        if {"path": "", **(deployment.spec["source"].get("git") or {})} == source
        and deployment.spec.get("crew") == recorded.get("crew")
        and not deployment.preview
    ]
    return max(found, key=lambda deployment: int(deployment.spec.get("attempt") or 1), default=None)


def _requested_since(text: str, latest: Deployment) -> bool:
    """Whether the annotation asks for another attempt at what failed, once for each of its values.

    A time that is still to come would else be later than every attempt.
    """
    if text == latest.annotations.get(ANNOTATION_REQUESTED_AT):
        return False
    try:
        return parse_time(text) > latest.created
    except ValueError:
        return False


def _create(project: Project, spec: dict[str, Any], attempt: int, look: Look) -> Create:
    metadata: dict[str, Any] = {
        "name": git_name(project.uid, spec, attempt),
        "annotations": {ANNOTATION_POLLED: "true"},
        "ownerReferences": [reference(project)],
    }
    if look.requested_at:
        metadata["annotations"][ANNOTATION_REQUESTED_AT] = look.requested_at
    return Create(kinds.DEPLOYMENT, {"metadata": metadata, "spec": {**spec, "attempt": attempt}})
