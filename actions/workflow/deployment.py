"""State of a deployment, its outputs and job summary. Called by the action `deploy`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actions.workflow import outputs
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
    activated: bool = False


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
