"""Observed source of each Project, from the last poll; in memory only, since a poll is cheap.

Written by `controller.source.poller`, read by `controller.project.reconcile`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from crds.names import ANNOTATION_REQUESTED_AT
from crds.objects import Deployment, Project

MAX_SKIPPED_COMMITS = 20


@dataclass(frozen=True)
class SourceProblem:
    """Why a repository could not be read; `transient` if a retry may help."""

    reason: str
    message: str
    transient: bool


@dataclass(frozen=True)
class ObservedSource:
    """Result of a poll of `source`: either a head or a problem."""

    source: Mapping[str, Any]
    requested_at: str
    name: str = ""
    commit: str = ""
    tree: str = ""
    subject: str = ""
    problem: SourceProblem | None = None
    skipped: tuple[str, ...] = ()
    """Former heads since the last deployed one that are not deployed."""

    def matches(self, project: Project) -> bool:
        """Return whether it observed the source in the Project's current spec."""
        return self.source == _source_fields(project)


def _source_fields(project: Project) -> dict[str, Any]:
    git = dict(project.git or {})
    git.pop("interval", None)
    return git


def unobserved(project: Project) -> ObservedSource:
    """Return an observation without a result."""
    return ObservedSource(_source_fields(project), project.annotations.get(ANNOTATION_REQUESTED_AT, ""))


class ObservedSources:
    """Last observation by Project, and requested polls."""

    def __init__(self) -> None:
        self._observed: dict[str, ObservedSource] = {}
        self._requested_by: dict[str, set[str]] = {}
        self._deployed: dict[str, str] = {}
        self._pending: dict[str, tuple[str, ...]] = {}
        self._requested: set[str] = set()

    def get(self, project: str) -> ObservedSource | None:
        """Return the last observation, or None."""
        return self._observed.get(project)

    def tree_of(self, deployment: Deployment) -> str | None:
        """Return the git tree of a Deployment's commit and path, if the last poll observed them."""
        observed, git = self._observed.get(deployment.project), deployment.spec["source"].get("git")
        if (
            observed is None
            or git is None
            or observed.problem is not None
            or observed.commit != git["commit"]
        ):
            return None
        same = observed.source.get("url") == git["url"] and (observed.source.get("path") or "") == (
            git.get("path") or ""
        )
        return observed.tree or None if same else None

    def put(self, project: str, observed: ObservedSource) -> bool:
        """Store an observation; return whether it differs from the last one."""
        before = self._observed.get(project)
        if before is None or before.source != observed.source:
            self._deployed.pop(project, None)
            self._pending.pop(project, None)
        elif observed.commit in ("", before.commit):
            observed = replace(observed, skipped=before.skipped)
        else:
            others = (commit for commit in self._pending.get(project, ()) if commit != observed.commit)
            observed = replace(observed, skipped=tuple(others)[-MAX_SKIPPED_COMMITS:])
        if observed.commit and observed.commit != self._deployed.get(project):
            seen = (*self._pending.get(project, ()), observed.commit)
            self._pending[project] = tuple(dict.fromkeys(seen))[-MAX_SKIPPED_COMMITS - 1 :]
        self._observed[project] = observed
        return before != observed

    def mark_deployed(self, project: str, commit: str) -> None:
        """Mark the commit as deployed; earlier pending commits no longer count."""
        self._deployed[project] = commit
        self._pending.pop(project, None)

    def request(self, project: str, deployments: set[str]) -> bool:
        """Request a poll for these Deployments (uids), once for each; return whether one is new."""
        fresh = deployments - self._requested_by.get(project, set())
        self._requested_by[project] = set(deployments)
        if fresh:
            self._requested.add(project)
        return bool(fresh)

    def pop_request(self, project: str) -> bool:
        """Return whether a poll was requested, and clear the request."""
        due = project in self._requested
        self._requested.discard(project)
        return due

    def remove(self, project: str) -> None:
        """Remove a deleted Project."""
        self._observed.pop(project, None)
        self._requested_by.pop(project, None)
        self._deployed.pop(project, None)
        self._pending.pop(project, None)
        self._requested.discard(project)
