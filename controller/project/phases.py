"""Phases of built Deployments, which follow the Project's `activeDeployment`. Pure."""

from datetime import datetime
from typing import Any

from controller.runtime.decision import Patch, difference
from crds import conditions, kinds
from crds.conditions import Condition
from crds.objects import Deployment
from crds.reasons import DeploymentPhase


def phase_patch(
    deployment: Deployment, active: str | None, activated_at: str | None, now: datetime
) -> tuple[Patch, ...]:
    """Return the patch that aligns a built Deployment's phase with its Project; empty if it is correct."""
    if deployment.name == active:
        phase, reason, message = DeploymentPhase.ACTIVE, "Active", "This is the project's active deployment."
    elif deployment.preview:
        phase, reason = DeploymentPhase.SUPERSEDED, "Preview"
        message = "A preview never becomes active; run it by its name."
    elif active is None:
        phase, reason = DeploymentPhase.SUPERSEDED, "Superseded"
        message = (
            "No deployment is active; activate this one by raising spec.activation, or run it by its name."
        )
    else:
        phase, reason = DeploymentPhase.SUPERSEDED, "Superseded"
        message = (
            "Another deployment is active; run this one by its name, or roll back to it by "
            "raising spec.activation."
        )
    wanted = [Condition(conditions.READY, True, reason, message)]
    for type_ in (conditions.BUILT, conditions.SMOKE_TESTED):
        if kept := conditions.find(deployment.conditions, type_):
            wanted.append(Condition(type_, True, kept["reason"], kept["message"]))
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
