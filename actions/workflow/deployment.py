"""What is known of a deployment, and how it is told to the job. Called by the deploy program."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actions.workflow import outputs
from actions.workflow.errors import Failed
from actions.workflow.failure_location import place


@dataclass
class Deployment:
    """What is known of the deployment; grows while the step goes on."""

    id: str
    status: str
    url: str
    directory: str
    rows: list[tuple[str, str]] = field(default_factory=list)
    error: Mapping[str, Any] = field(default_factory=dict)
    activated: bool = False


def failure(deployment: Deployment, checkout: Path) -> Failed:
    """The reason as an annotation, in the file where that is known."""
    error = deployment.error
    reason, message = str(error.get("reason") or "Failed"), str(error.get("message") or "no message")
    found = place(message, deployment.directory)
    if found and not (checkout / found[0]).is_file():
        found = None
    hint = f"\n{error['hint']}" if error.get("hint") else ""
    return Failed(
        f"{message}{hint}\nThe deployment {deployment.id} failed; the one before it stays active.",
        title=reason,
        file=found[0] if found else None,
        line=found[1] if found else None,
    )


def told(environment: Mapping[str, str], deployment: Deployment) -> None:
    """Outputs and summary, whatever the end."""
    outputs.write_outputs(
        environment, {"deployment-id": deployment.id, "status": deployment.status, "url": deployment.url}
    )
    rows = [
        ("Deployment", outputs.link(deployment.id, deployment.url)),
        ("Status", f"**{outputs.cell(deployment.status)}**"),
        *deployment.rows,
        ("Build log", outputs.link("logs", f"{deployment.url}/logs")),
    ]
    if deployment.error:
        error = f"{deployment.error.get('reason')}: {deployment.error.get('message')}"
        rows.append(("Error", outputs.cell(error)))
    outputs.write_summary(environment, outputs.table(f"Crewyard deployment {deployment.id}", rows))
