"""What the last look at each Project's repository found; in memory only, since looking again is cheap.

Written by `controller.source.poller`, read by `controller.project.reconcile`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from crds.names import ANNOTATION_REQUESTED_AT
from crds.objects import Deployment, Project

MOST_SKIPPED = 20


@dataclass(frozen=True)
class Problem:
    """Why a repository could not be read; `passing` where waiting may cure it."""

    reason: str
    message: str
    passing: bool


@dataclass(frozen=True)
class Look:
    """A look at the source that `source` describes; either a head or a problem."""

    source: Mapping[str, Any]
    requested_at: str
    name: str = ""
    commit: str = ""
    tree: str = ""
    subject: str = ""
    problem: Problem | None = None
    skipped: tuple[str, ...] = ()
    """Commits that were the head since the last one acted upon, and are not deployed."""

    def fits(self, project: Project) -> bool:
        """Whether it was a look at what the Project's spec says now."""
        return self.source == _asked(project)


def _asked(project: Project) -> dict[str, Any]:
    git = dict(project.git or {})
    git.pop("interval", None)
    return git


def begin(project: Project) -> Look:
    """A look that has found nothing yet."""
    return Look(_asked(project), project.annotations.get(ANNOTATION_REQUESTED_AT, ""))


class Looks:
    """The last look by Project, and who asks for one now."""

    def __init__(self) -> None:
        self._found: dict[str, Look] = {}
        self._asked: dict[str, set[str]] = {}
        self._taken: dict[str, str] = {}
        self._waiting: dict[str, tuple[str, ...]] = {}
        self._due: set[str] = set()

    def get(self, project: str) -> Look | None:
        """The last look, or None."""
        return self._found.get(project)

    def tree_of(self, deployment: Deployment) -> str | None:
        """The git tree of a Deployment's commit at its path, where the last look was at just that."""
        look, git = self._found.get(deployment.project), deployment.spec["source"].get("git")
        if look is None or git is None or look.problem is not None or look.commit != git["commit"]:
            return None
        same = look.source.get("url") == git["url"] and (look.source.get("path") or "") == (
            git.get("path") or ""
        )
        return look.tree or None if same else None

    def put(self, project: str, look: Look) -> bool:
        """Keeps a look; whether it found something new."""
        before = self._found.get(project)
        if before is None or before.source != look.source:
            self._taken.pop(project, None)
            self._waiting.pop(project, None)
        elif look.commit in ("", before.commit):
            look = replace(look, skipped=before.skipped)
        else:
            others = (commit for commit in self._waiting.get(project, ()) if commit != look.commit)
            look = replace(look, skipped=tuple(others)[-MOST_SKIPPED:])
        if look.commit and look.commit != self._taken.get(project):
            seen = (*self._waiting.get(project, ()), look.commit)
            self._waiting[project] = tuple(dict.fromkeys(seen))[-MOST_SKIPPED - 1 :]
        self._found[project] = look
        return before != look

    def took(self, project: str, commit: str) -> None:
        """What was seen of the source up to this commit is acted upon; what came before counts no more."""
        self._taken[project] = commit
        self._waiting.pop(project, None)

    def demand(self, project: str, deployments: set[str]) -> bool:
        """Asks for a look because of these Deployments (uids), once for each; whether one is due now."""
        fresh = deployments - self._asked.get(project, set())
        self._asked[project] = set(deployments)
        if fresh:
            self._due.add(project)
        return bool(fresh)

    def take_demand(self, project: str) -> bool:
        """Whether a look was asked for; asking is over with it."""
        due = project in self._due
        self._due.discard(project)
        return due

    def forget(self, project: str) -> None:
        """The Project is gone."""
        self._found.pop(project, None)
        self._asked.pop(project, None)
        self._taken.pop(project, None)
        self._waiting.pop(project, None)
        self._due.discard(project)
