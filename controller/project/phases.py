"""The phases of built Deployments, which follow the Project's `activeDeployment`. Pure."""

from datetime import datetime
from typing import Any

from controller.runtime.decision import Patch, difference
from crds import conditions, kinds
from crds.conditions import Condition
from crds.objects import Deployment
from crds.reasons import DeploymentPhase


def follow(
    deployment: Deployment, active: str | None, activated_at: str | None, now: datetime
) -> tuple[Patch, ...]:
    """The patch that brings a built Deployment's phase after the Project's; none where it is right."""
    if deployment.name == active:
        phase, reason, message = DeploymentPhase.ACTIVE, "Active", "This is the project's active deployment."
    elif deployment.preview:
        phase, reason = DeploymentPhase.SUPERSEDED, "Preview"
        message = "A preview never becomes active; it can be run by its name."
    else:
        phase, reason = DeploymentPhase.SUPERSEDED, "Superseded"
        message = (
            "Another deployment is active; this one can be run by its name, or be rolled back to by "
            "raising spec.activation."
        )
    built = conditions.find(deployment.conditions, conditions.BUILT) or {}
    wanted = [
        Condition(conditions.READY, True, reason, message),
        Condition(
            conditions.BUILT,
            True,
            str(built.get("reason", "Built")),
            str(built.get("message", f"The image is {deployment.image}.")),
        ),
    ]
    status: dict[str, Any] = {
        "observedGeneration": deployment.generation,
        "phase": str(phase),
        "conditions": conditions.merge(deployment.conditions, wanted, deployment.generation, now),
    }
    if deployment.name == active and deployment.phase != DeploymentPhase.ACTIVE and activated_at:
        status["activatedAt"] = activated_at
    change = difference(deployment.status, status)
    if not change:
        return ()
    return (Patch(kinds.DEPLOYMENT, deployment.name, {"status": change}, deployment.resource_version),)
