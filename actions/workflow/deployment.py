"""State of a deployment, its outputs and job summary. Called by the action `deploy`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actions.workflow import outputs
from actions.workflow.client.sse import as_object
from actions.workflow.errors import StepFailed
from actions.workflow.failure_location import locate


@dataclass
class DeploymentProgress:
    """State of the deployment, filled in while the step runs."""

    id: str
    status: str
    url: str
    directory: str
    rows: list[tuple[str, str]] = field(default_factory=list)
    error: Mapping[str, Any] = field(default_factory=dict)
    created_at: str = ""
    activated: bool = False
    active: Mapping[str, Any] | None = None
    """The project's active deployment once this one is superseded: {} without one, None if not readable."""

    def observe(self, current: Mapping[str, Any]) -> None:
        """Store the state of the deployment as the API shows it."""
        self.status, self.created_at = str(current["status"]), str(current["created_at"])
        self.activated, self.error = bool(current.get("activated_at")), as_object(current.get("error"))

    @property
    def passed_over(self) -> bool:
        """Whether it is built, was never active, and no newer deployment is active, as far as can be read."""
        other = self.active
        is_newer = other is None or (
            other.get("id") != self.id and str(other.get("created_at", "")) >= self.created_at
        )
        return self.status == "superseded" and not self.activated and not is_newer


def notice(deployment: DeploymentProgress) -> str | None:
    """Return what to say about a deployment that was to become active and has not failed; None if it did.

    Raises StepFailed if it does not become active, and no newer one took its place.
    """
    if deployment.status == "failed":
        return f"{deployment.error.get('message')} ({deployment.id})"
    if deployment.status != "superseded" or deployment.activated:
        return None
    active = f"the deployment {deployment.active['id']}" if deployment.active else "no deployment"
    if deployment.passed_over:
        raise StepFailed(
            f"{deployment.id} is built, but does not become active: {active} is. A commit becomes active "
            "only as the head of the branch that the project follows. Give the input preview to run it by "
            f"its id; crewyard rollback {deployment.id} activates it.",
            title="NotActive",
        )
    newer = f"the newer deployment {deployment.active['id']}" if deployment.active else "another deployment"
    return f"{deployment.id} is built, but {newer} is active."


def failure(deployment: DeploymentProgress, checkout: Path) -> StepFailed:
    """Return the failure of a deployment, located in a file of the checkout if the message names one."""
    error = deployment.error
    reason, message = str(error.get("reason") or "Failed"), str(error.get("message") or "no message")
    location = locate(message, deployment.directory)
    if location and not (checkout / location[0]).is_file():
        location = None
    hint = f"\n{error['hint']}" if error.get("hint") else ""
    return StepFailed(
        f"{message}{hint}\nThe deployment {deployment.id} failed; the previous deployment stays active.",
        title=reason,
        file=location[0] if location else None,
        line=location[1] if location else None,
    )


def write_report(environment: Mapping[str, str], deployment: DeploymentProgress) -> None:
    """Write outputs and job summary, for every outcome."""
    outputs.write_outputs(
        environment, {"deployment-id": deployment.id, "status": deployment.status, "url": deployment.url}
    )
    rows = [
        ("Deployment", outputs.link(deployment.id, deployment.url)),
        ("Status", f"**{outputs.cell(deployment.status)}**"),
        *deployment.rows,
    ]
    if deployment.error:
        error = f"{deployment.error.get('reason')}: {deployment.error.get('message')}"
        rows.append(("Error", outputs.cell(error)))
    outputs.write_summary(environment, outputs.table(f"Crewyard deployment {deployment.id}", rows))
