"""The status patches of a Deployment until it is built or failed. Pure.

From then on its phase follows the Project (`controller.project.phases`).
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from controller.deployment.build_result import Built, Failure
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
    """A Deployment that waits before its build."""
    return _status(deployment, DeploymentPhase.PENDING, _unbuilt(reason, message), now)


def building(
    deployment: Deployment, pod: str | None, reason: str, message: str, now: datetime
) -> dict[str, Any]:
    """A Deployment that `pod` builds; None leaves the recorded one."""
    status = _status(deployment, DeploymentPhase.BUILDING, _unbuilt(reason, message), now)
    return {**status, "buildPod": pod} if pod else status


def refused(deployment: Deployment, message: str, begun: bool, now: datetime) -> dict[str, Any]:
    """A Deployment whose pod is refused for the time being; since when, its condition Built says."""
    phase = DeploymentPhase.BUILDING if begun else DeploymentPhase.PENDING
    wanted = _unbuilt(POD_REFUSED, message)
    told = [
        replace(condition, status=False) if condition.type == conditions.BUILT else condition
        for condition in wanted
    ]
    return _status(deployment, phase, told, now)


def built(deployment: Deployment, answer: Built, now: datetime) -> dict[str, Any]:
    """A Deployment whose image is there; its Project decides whether it becomes active."""
    message = "The image is built; the project decides which deployment is active."
    wanted = [
        Condition(conditions.READY, None, ACTIVATING, message),
        Condition(conditions.BUILT, True, "Built", f"The image is {answer.image}."),
        Condition(conditions.RECONCILING, True, ACTIVATING, message),
    ]
    return {
        **_status(deployment, DeploymentPhase.BUILDING, wanted, now),
        "image": answer.image,
        "plan": {key: value for key, value in answer.plan.items() if value is not None},
        "tree": answer.tree,
        "buildKey": answer.build_key,
        **({"dependenciesKey": answer.dependencies_key} if answer.dependencies_key else {}),
    }


def reused(deployment: Deployment, twin: Deployment, key: str, now: datetime) -> dict[str, Any]:
    """A Deployment that takes over the image of another one, which was built from the same."""
    message = "The image is there; the project decides which deployment is active."
    told = f"Built from the same source as {twin.name}: its image is taken over, {twin.image}."
    wanted = [
        Condition(conditions.READY, None, ACTIVATING, message),
        Condition(conditions.BUILT, True, REUSED, told),
        Condition(conditions.RECONCILING, True, ACTIVATING, message),
    ]
    taken = ("image", "plan", "tree", "buildKey", "dependenciesKey")
    return {
        **_status(deployment, DeploymentPhase.BUILDING, wanted, now),
        **{name: twin.status[name] for name in taken if name in twin.status},
        "sourceKey": key,
    }


def failed(deployment: Deployment, failure: Failure, now: datetime) -> dict[str, Any]:
    """The end of a Deployment that could not be built."""
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
