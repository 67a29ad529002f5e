"""Comment on a pull request with the state of its newest preview. Pure.

A pull request has one comment of each project. Its first line is invisible and names the project and the
preview's creation time: an older preview, reported late, does not replace the text of a newer one.
Called by `controller.github.reconcile` and `controller.github.client`.
"""

from dataclasses import dataclass

from controller.github.report import DeploymentReport, pull_request
from crds.names import id_of
from crds.objects import Deployment, Project
from crds.times import format_second

_TITLES = {
    "queued": "is waiting to be built",
    "in_progress": "is being built",
    "success": "is built",
    "failure": "could not be built",
    "error": "was not built",
    "inactive": "is deleted",
}


@dataclass(frozen=True)
class PullRequestComment:
    """Comment of a project on a pull request. `order` sorts comments by the age of their previews."""

    repository: str
    number: int
    marker: str
    order: str
    body: str

    def replaces(self, body: str) -> bool:
        """Return whether it is to replace a comment of the same project with this body."""
        order = body.removeprefix(self.marker).split(" -->", 1)[0]
        return body != self.body and order <= self.order


def comment(project: Project, deployment: Deployment, report: DeploymentReport) -> PullRequestComment | None:
    """Return the comment of a preview, or None if the project wants none or it has no pull request."""
    number = pull_request(deployment)
    if not (project.spec.get("github") or {}).get("comment") or not deployment.preview or number is None:
        return None
    marker = f"<!-- crewyard/{project.name} "
    order = f"{format_second(deployment.created)} {deployment.name}"
    identifier = id_of(deployment.name)
    commit = report.commit[:12]
    if not report.proven:
        commit += " (uploaded)"
    lines = [
        f"{marker}{order} -->",
        f"**Crewyard**: the preview of `{project.name}` at {commit} {_TITLES[report.state]}.",
    ]
    if report.state in ("failure", "error"):
        lines += ["", _quoted(report.description)]
    if report.state == "success":
        lines += ["", "```sh", f"crewyard run {identifier} --input '{{}}'", "```"]
    if report.log_url:
        lines += ["", f"[Deployment {identifier}]({report.log_url})"]
    return PullRequestComment(report.repository, number, marker, order, "\n".join(lines) + "\n")


def _quoted(text: str) -> str:
    """Return text as code, so that GitHub neither formats it nor notifies anybody it mentions."""
    return "`" + text.replace("`", "'") + "`"
