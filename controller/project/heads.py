"""What the head of a repository asks for: a Deployment to create, and whether it has moved. Pure.

"Moved" is against `status.source`, the last head acted upon, and means another
tree below `path` or another crew of it: a refused tree does not come back by a
commit outside `path`, nor by another change of the Project.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controller.decision import Create
from controller.owner import reference
from controller.project.looks import Look
from crds import kinds
from crds.git_names import git_name
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
            return Head(create=_create(project, spec, attempt + 1), moved=True, source=source)
        return Head(deployment=latest, moved=True, source=source)
    if latest is not None and latest.failed and _requested_since(look.requested_at, latest.created):
        return Head(create=_create(project, spec, attempt + 1), source=source)
    return Head(deployment=latest, source=source)


def _returning(latest: Deployment, recorded: Mapping[str, Any], look: Look) -> bool:
    """Whether the head comes back to a commit whose Deployment failed before it was ordered."""
    return latest.failed and recorded.get("commit") not in (None, look.commit)


def _requested_since(text: str, moment: datetime) -> bool:
    """Whether the annotation asks for another attempt at what failed."""
    try:
        return parse_time(text) > moment
    except ValueError:
        return False


def _create(project: Project, spec: dict[str, Any], attempt: int) -> Create:
    return Create(
        kinds.DEPLOYMENT,
        {
            "metadata": {
                "name": git_name(project.uid, spec, attempt),
                "ownerReferences": [reference(project)],
            },
            "spec": {**spec, "attempt": attempt},
        },
    )
