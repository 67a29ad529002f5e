"""Status patches of a Deployment until it is built or failed. Pure.

From then on its phase follows the Project (`controller.project.phases`).
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from controller.deployment.build_result import BuildFailure, ImageBuilt
from crds import conditions
from crds.conditions import Condition
from crds.objects import Deployment
from crds.reasons import DeploymentPhase

QUEUED = "Queued"
SAME_SOURCE = "SameSourceBuilding"
POD_REFUSED = "PodRefused"
REUSED = "Reused"
PROJECT_NOT_FOUND = "ProjectNotFound"
ASSEMBLING = "Assembling"
INSTALLING = "InstallingDependencies"
ACTIVATING = "Activating"


def _status(
    deployment: Deployment, phase: DeploymentPhase, wanted: list[Condition], now: datetime
) -> dict[str, Any]:
    return {
        "observedGeneration": deployment.generation,
        "phase": str(phase),
        "conditions": conditions.merge(deployment.conditions, wanted, deployment.generation, now),
    }


def _unbuilt(reason: str, message: str) -> list[Condition]:
    return [
        Condition(conditions.READY, None, reason, message),
        Condition(conditions.BUILT, None, reason, message),
        Condition(conditions.RECONCILING, True, reason, message),
    ]


def pending(deployment: Deployment, reason: str, message: str, now: datetime) -> dict[str, Any]:
    """Return the status of a Deployment that waits for its build."""
    return _status(deployment, DeploymentPhase.PENDING, _unbuilt(reason, message), now)


def building(
    deployment: Deployment, pod: str | None, reason: str, message: str, now: datetime
) -> dict[str, Any]:
    """Return the status of a Deployment that `pod` builds; None keeps the recorded pod."""
    status = _status(deployment, DeploymentPhase.BUILDING, _unbuilt(reason, message), now)
    return {**status, "buildPod": pod} if pod else status


def pod_refused(deployment: Deployment, message: str, has_started: bool, now: datetime) -> dict[str, Any]:
    """Return the status of a Deployment whose pod is rejected; the condition Built dates it."""
    phase = DeploymentPhase.BUILDING if has_started else DeploymentPhase.PENDING
    unbuilt = _unbuilt(POD_REFUSED, message)
    desired = [
        replace(condition, status=False) if condition.type == conditions.BUILT else condition
        for condition in unbuilt
    ]
    return _status(deployment, phase, desired, now)


def built(deployment: Deployment, result: ImageBuilt, now: datetime) -> dict[str, Any]:
    """Return the status of a built Deployment; its Project decides whether it becomes active."""
    message = "The image is built; the project decides which deployment is active."
    wanted = [
        Condition(conditions.READY, None, ACTIVATING, message),
        Condition(conditions.BUILT, True, "Built", f"The image is {result.image}."),
        Condition(conditions.RECONCILING, True, ACTIVATING, message),
    ]
    return {
        **_status(deployment, DeploymentPhase.BUILDING, wanted, now),
        "image": result.image,
        "plan": {key: value for key, value in result.plan.items() if value is not None},
        "tree": result.tree,
        "buildKey": result.build_key,
        **({"dependenciesKey": result.dependencies_key} if result.dependencies_key else {}),
    }


def reused(deployment: Deployment, source: Deployment, key: str, now: datetime) -> dict[str, Any]:
    """Return the status of a Deployment that reuses the image of one with the same source."""
    message = "The image exists; the project decides which deployment is active."
    built_message = f"Built from the same source as {source.name}: reusing its image {source.image}."
    wanted = [
        Condition(conditions.READY, None, ACTIVATING, message),
        Condition(conditions.BUILT, True, REUSED, built_message),
        Condition(conditions.RECONCILING, True, ACTIVATING, message),
    ]
    copied_fields = ("image", "plan", "tree", "buildKey", "dependenciesKey")
    return {
        **_status(deployment, DeploymentPhase.BUILDING, wanted, now),
        **{name: source.status[name] for name in copied_fields if name in source.status},
        "sourceKey": key,
    }


def failed(deployment: Deployment, failure: BuildFailure, now: datetime) -> dict[str, Any]:
    """Return the final status of a Deployment that failed to build."""
    message = failure.message[:4000]
    wanted = [
        Condition(conditions.READY, False, failure.reason, message),
        Condition(conditions.BUILT, False, failure.reason, message),
        Condition(conditions.STALLED, True, failure.reason, message),
    ]
    error = {"reason": failure.reason, "message": message}
    if failure.hint:
        error["hint"] = failure.hint[:1000]
    if failure.log:
        error["log"] = failure.log[-4000:]
    return {**_status(deployment, DeploymentPhase.FAILED, wanted, now), "error": error}
