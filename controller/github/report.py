"""What GitHub should be told of a Deployment, and what it was told last. Pure.

A commit status says whether the commit could be built; a GitHub Deployment of an
environment named after the project says where it runs. What was told is kept in
an annotation, since a failed Deployment's status is frozen. Called by
`controller.github.reconcile`.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from crds.names import ANNOTATION_CLOSED, ANNOTATION_GITHUB, id_of
from crds.objects import Deployment, Project
from crds.reasons import BuildReason

FRESH = timedelta(days=1)
"""A Deployment older than that of which GitHub knows nothing is not told: its state is no news."""
MAX_DESCRIPTION = 140
"""GitHub's limit of a description, in characters."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_TOLD = re.compile(r"([a-z_]+) (\d+)")
_COMMIT_STATES = {
    "queued": "pending",
    "in_progress": "pending",
    "success": "success",
    "inactive": "success",
    "failure": "failure",
    "error": "error",
}


@dataclass(frozen=True)
class Told:
    """What GitHub was told last: the state of its own deployment object, and that one's id."""

    state: str
    deployment: int


@dataclass(frozen=True)
class Report:
    """What GitHub should be told. `state` is one of GitHub's deployment states."""

    repository: str
    commit: str
    name: str
    project: str
    environment: str
    transient: bool
    state: str
    description: str
    log_url: str | None

    @property
    def commit_state(self) -> str:
        """The state of the commit status: pending, success or failure."""
        return _COMMIT_STATES[self.state]

    @property
    def context(self) -> str:
        """The name of the commit status."""
        return f"crewyard/{self.project}"

    def news(self, told: Told | None) -> bool:
        """Whether GitHub was told something else."""
        return told is None or told.state != self.state

    def commit_news(self, told: Told | None) -> bool:
        """Whether the commit status changes by it."""
        return told is None or _COMMIT_STATES.get(told.state) != self.commit_state


def told(deployment: Deployment) -> Told | None:
    """What the annotation remembers; None where there is none, or what is no word of ours."""
    found = _TOLD.fullmatch(deployment.annotations.get(ANNOTATION_GITHUB, ""))
    return Told(found[1], int(found[2])) if found else None


def annotation(report: Report, deployment: int) -> str:
    """The annotation's value once GitHub was told."""
    return f"{report.state} {deployment}"


def report(project: Project, deployment: Deployment, public_url: str, now: datetime) -> Report | None:
    """What to tell, or None where the project tells nothing or nothing can be told of this one."""
    wanted = project.spec.get("github")
    commit = str(deployment.spec.get("gitSha") or "")
    if wanted is None or deployment.deleting or not _COMMIT.fullmatch(commit):
        return None
    if told(deployment) is None and now - deployment.created > FRESH:
        return None
    state, description = _state(deployment)
    identifier = id_of(deployment.name)
    return Report(
        repository=str(wanted["repository"]),
        commit=commit,
        name=deployment.name,
        project=project.name,
        environment=environment(project.name, deployment),
        transient=deployment.preview,
        state=state,
        description=_short(description),
        log_url=f"{public_url}/v1/deployments/{identifier}/logs" if public_url else None,
    )


def environment(project: str, deployment: Deployment) -> str:
    """The name of GitHub's environment: the project, with the pull request behind it for a preview."""
    if not deployment.preview:
        return project
    number = pull_request(deployment)
    return f"{project}/preview" if number is None else f"{project}/pull-{number}"


def pull_request(deployment: Deployment) -> int | None:
    """The number of the pull request that a preview is of."""
    number = (deployment.spec.get("preview") or {}).get("pullRequest")
    return int(number) if number else None


def _state(deployment: Deployment) -> tuple[str, str]:
    if deployment.failed:
        error = deployment.status.get("error") or {}
        if error.get("reason") == BuildReason.SUPERSEDED:
            # The commit is none the worse: a newer one was there before its turn came.
            return "error", f"Not built: {error.get('message') or 'a newer commit is deployed'}"
        return "failure", f"{error.get('reason') or 'Failed'}: {error.get('message') or 'see the build log'}"
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
    """One line within GitHub's limit."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= MAX_DESCRIPTION else f"{line[: MAX_DESCRIPTION - 1]}…"
