"""Revision of a Project's source: the Deployment it needs, and whether the head moved. Pure.

"Moved" compares with `status.source`, the last handled head, and means another tree below `path`
or another crew: a failed tree is not retried because of a commit outside `path`, or of another
change of the Project. Called by `controller.project.decide`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controller.owner import reference
from controller.runtime.decision import Create
from controller.source.observed import ObservedSource
from crds import conditions, kinds
from crds.deployment_name import git_name
from crds.names import ANNOTATION_POLLED, ANNOTATION_REQUESTED_AT, LABEL_PROJECT
from crds.objects import Deployment, Project
from crds.times import parse_time

MAX_ATTEMPTS = 100


@dataclass(frozen=True)
class Revision:
    """Either `create` is the missing Deployment, or `deployment` is the head's latest one, if any.

    `moved` requests a new order for it; `source` is the status to record then, empty without a head.
    """

    create: Create | None = None
    deployment: Deployment | None = None
    moved: bool = False
    source: Mapping[str, str | None] = field(default_factory=dict)


NO_HEAD = Revision()
"""The revision before a poll has found a head."""


def desired_spec(project: Project, observed: ObservedSource) -> dict[str, Any]:
    """Return the spec of the Deployment of a head, without its attempt."""
    git = project.git or {}
    source: dict[str, Any] = {"url": git["url"], "commit": observed.commit}
    if git.get("path"):
        source["path"] = git["path"]
    spec: dict[str, Any] = {"project": project.name, "source": {"git": source}, "gitSha": observed.commit}
    if git.get("crew"):
        spec["crew"] = git["crew"]
    if observed.subject:
        spec["message"] = observed.subject
    return spec


def resolve_revision(
    project: Project, deployments: Sequence[Deployment], observed: ObservedSource
) -> Revision:
    """Return the revision of the observed head."""
    spec = desired_spec(project, observed)
    by_name = {deployment.name: deployment for deployment in deployments}
    latest, attempt = None, 0
    while deployment := by_name.get(git_name(project.uid, spec, attempt + 1)):
        latest, attempt = deployment, attempt + 1
    recorded = project.status.get("source") or {}
    git = project.git or {}
    crew = git.get("crew")
    source = {"commit": observed.commit, "tree": observed.tree, "path": git.get("path"), "crew": crew}
    moved = recorded.get("tree") != observed.tree or recorded.get("crew") != crew
    if moved:
        missing = latest is None or _needs_attempt(latest, recorded, observed)
    else:
        # A later commit that changes nothing below the path has no Deployment of its own.
        ordered = [one for one in _of_source(git, crew, deployments) if one.order]
        tried = latest or max(ordered, key=lambda one: one.order, default=None)
        missing = tried is not None and tried.failed and _requested_since(observed.requested_at, tried)
    if missing and attempt < MAX_ATTEMPTS:
        if latest is not None and "message" in latest.spec:
            # A restarted controller has not fetched the recorded commit again: it has no subject.
            spec.setdefault("message", latest.spec["message"])
        create = _create(project, spec, attempt + 1, observed)
        return Revision(create=create, moved=moved, source=source)
    return Revision(deployment=latest, moved=moved, source=source)


def _needs_attempt(latest: Deployment, recorded: Mapping[str, Any], observed: ObservedSource) -> bool:
    """Return whether a moved head needs another attempt: the last one failed before the head moved to it.

    One without an order counts as such if another commit was the head.
    """
    returns = recorded.get("commit") not in (None, observed.commit)
    return latest.failed and (latest.order > 0 or returns)


def recorded_attempts(project: Project, deployments: Sequence[Deployment]) -> list[Deployment]:
    """Return the Deployments of the head in `status.source`, latest last; none of an earlier Project."""
    recorded, git = project.status.get("source") or {}, project.git
    if git is None or not recorded.get("commit"):
        return []
    attempts = [
        deployment
        for deployment in _of_source(git, recorded.get("crew"), deployments)
        if deployment.spec["source"]["git"]["commit"] == recorded["commit"]
        and deployment.name == git_name(project.uid, deployment.spec, _attempt(deployment))
    ]
    return sorted(attempts, key=_attempt)


def _attempt(deployment: Deployment) -> int:
    return int(deployment.spec.get("attempt") or 1)


def _of_source(
    git: Mapping[str, Any], crew: str | None, deployments: Sequence[Deployment]
) -> Iterator[Deployment]:
    """Yield the Deployments of commits below the URL and path of a Project's source, without previews."""
    for deployment in deployments:
        own = deployment.spec["source"].get("git") or {}
        same = own.get("url") == git["url"] and (own.get("path") or "") == (git.get("path") or "")
        if same and deployment.spec.get("crew") == crew and not deployment.preview:
            yield deployment


def _requested_since(text: str, failed: Deployment) -> bool:
    """Return whether the annotation requests another attempt after a failure, once per value.

    Without that check, a future time would be later than every attempt.
    """
    if text == failed.annotations.get(ANNOTATION_REQUESTED_AT):
        return False
    ready = conditions.find(failed.conditions, conditions.READY) or {}
    failed_at = ready.get("lastTransitionTime") or failed.metadata["creationTimestamp"]
    try:
        return parse_time(text) >= parse_time(failed_at)
    except ValueError:
        return False


def _create(project: Project, spec: dict[str, Any], attempt: int, observed: ObservedSource) -> Create:
    metadata: dict[str, Any] = {
        "name": git_name(project.uid, spec, attempt),
        "labels": {LABEL_PROJECT: project.name},
        "annotations": {ANNOTATION_POLLED: "true"},
        "ownerReferences": [reference(kinds.PROJECT, project)],
    }
    if observed.requested_at:
        metadata["annotations"][ANNOTATION_REQUESTED_AT] = observed.requested_at
    return Create(kinds.DEPLOYMENT, {"metadata": metadata, "spec": {**spec, "attempt": attempt}})
