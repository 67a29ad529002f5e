"""GitHub report of a Deployment, and the last report. Pure.

The commit status shows whether the commit could be built; a GitHub deployment, in an environment
named after the project, shows where it runs. An annotation records the last report, since a failed
Deployment's status is frozen. Called by `controller.github.reconcile`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from crds.github import proven_commits
from crds.names import (
    ANNOTATION_CLOSED,
    ANNOTATION_GITHUB,
    ANNOTATION_PROVEN_COMMIT,
    id_of,
)
from crds.objects import Deployment, Project
from crds.reasons import BuildReason

MAX_UNREPORTED_AGE = timedelta(days=1)
"""Older unreported Deployments are not reported: their state is not news."""
MAX_DESCRIPTION_LENGTH = 140
"""GitHub's limit of a description in characters."""
_UNPROVEN_SUFFIX = "/uploaded"
"""Of the names in a report about an upload whose commit nothing proves: no branch rule waits for these."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_ANNOTATION = re.compile(r"([a-z_]+) (\d+)")
_COMMIT_STATES = {
    "queued": "pending",
    "in_progress": "pending",
    "success": "success",
    "inactive": "success",
    "failure": "failure",
    "error": "error",
}


@dataclass(frozen=True)
class LastReport:
    """Last report: the state of GitHub's deployment, and its id."""

    state: str
    deployment: int


@dataclass(frozen=True)
class DeploymentReport:
    """Report of a Deployment. `state` is one of GitHub's deployment states.

    `context` is the name of the commit status; `proven` is False for an upload whose commit nothing proves.
    """

    repository: str
    commit: str
    name: str
    context: str
    environment: str
    transient: bool
    state: str
    description: str
    log_url: str | None
    proven: bool

    @property
    def commit_state(self) -> str:
        """State of the commit status: pending, success or failure."""
        return _COMMIT_STATES[self.state]

    def state_changed(self, last: LastReport | None) -> bool:
        """Return whether the state differs from the last report."""
        return last is None or last.state != self.state

    def commit_state_changed(self, last: LastReport | None) -> bool:
        """Return whether the commit status differs from the last report."""
        return last is None or _COMMIT_STATES.get(last.state) != self.commit_state


def last_report(deployment: Deployment) -> LastReport | None:
    """Parse the annotation; None if it is missing or invalid."""
    match = _ANNOTATION.fullmatch(deployment.annotations.get(ANNOTATION_GITHUB, ""))
    return LastReport(match[1], int(match[2])) if match else None


def annotation(report: DeploymentReport, deployment: int) -> str:
    """Return the annotation's value after a report."""
    return f"{report.state} {deployment}"


def report(
    project: Project, deployment: Deployment, public_url: str, token_keys: tuple[str, ...], now: datetime
) -> DeploymentReport | None:
    """Return the report, or None if the project has no GitHub settings or the Deployment no commit."""
    github = project.spec.get("github")
    if github is None:
        return None
    repository, is_reported = str(github["repository"]), last_report(deployment) is not None
    proven = _is_proven(deployment, repository, _commit(deployment), token_keys)
    return commit_report(project, deployment, repository, is_reported, public_url, now, proven)


def commit_report(
    project: Project,
    deployment: Deployment,
    repository: str,
    is_reported: bool,
    public_url: str,
    now: datetime,
    proven: bool | None = None,
) -> DeploymentReport | None:
    """Return the report to any git host, or None for a Deployment without a commit, or an old one.

    `proven` None: only a commit that the build fetched itself is.
    """
    commit = _commit(deployment)
    if deployment.deleting or not _COMMIT.fullmatch(commit):
        return None
    if not is_reported and now - deployment.created > MAX_UNREPORTED_AGE:
        return None
    state, description = _state(deployment)
    identifier = id_of(deployment.name)
    proven = bool(_git(deployment)) if proven is None else proven
    suffix = "" if proven else _UNPROVEN_SUFFIX
    return DeploymentReport(
        repository=repository,
        commit=commit,
        name=deployment.name,
        context=f"crewyard/{project.name}{suffix}",
        environment=environment(project.name, deployment) + suffix,
        transient=deployment.preview,
        state=state,
        description=_short(description),
        log_url=f"{public_url}/console/#/deployments/{identifier}" if public_url else None,
        proven=proven,
    )


def _git(deployment: Deployment) -> Mapping[str, Any]:
    return (deployment.spec.get("source") or {}).get("git") or {}


def _commit(deployment: Deployment) -> str:
    """Return the commit that was built; of an upload, the one that its creator named."""
    return str(_git(deployment).get("commit") or deployment.spec.get("gitSha") or "")


def _is_proven(deployment: Deployment, repository: str, commit: str, token_keys: tuple[str, ...]) -> bool:
    """Return whether the build fetched the commit itself, or the creator's token named it."""
    if _git(deployment):
        return True
    given = deployment.annotations.get(ANNOTATION_PROVEN_COMMIT, "")
    return proven_commits.is_proven(token_keys, deployment.spec, repository, commit, given)


def environment(project: str, deployment: Deployment) -> str:
    """Return the name of GitHub's environment: the project, plus the pull request of a preview."""
    if not deployment.preview:
        return project
    number = pull_request(deployment)
    return f"{project}/preview" if number is None else f"{project}/pull-{number}"


def pull_request(deployment: Deployment) -> int | None:
    """Return the pull request number of a preview, or None."""
    number = (deployment.spec.get("preview") or {}).get("pullRequest")
    return int(number) if number else None


def _state(deployment: Deployment) -> tuple[str, str]:
    if deployment.failed:
        error = deployment.status.get("error") or {}
        if error.get("reason") in (BuildReason.SUPERSEDED, BuildReason.CANCELED):
            # Not a fault of the commit: a newer one came before its build, or a user canceled the build.
            return "error", f"Not built: {error.get('message') or 'a newer commit is deployed'}"
        return "failure", f"{error.get('reason') or 'Failed'}: {error.get('message') or 'see the build log'}"
    if deployment.built and deployment.erased:
        return "inactive", "Erased"
    if deployment.preview and deployment.built and ANNOTATION_CLOSED in deployment.annotations:
        return "inactive", "Its pull request is closed"
    if deployment.preview and deployment.built:
        return "success", "Built; a preview never becomes active"
    if deployment.phase == "Active":
        return "success", "Active"
    if deployment.phase == "Superseded":
        return "inactive", "Built; a newer deployment is active"
    if deployment.phase == "Building":
        return "in_progress", "The image is being built"
    return "queued", "Waiting to be built"


def _short(text: str) -> str:
    """Return one line within GitHub's limit."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= MAX_DESCRIPTION_LENGTH else f"{line[: MAX_DESCRIPTION_LENGTH - 1]}…"
