"""Status patches of a Deployment until it is built or failed. Pure.

From then on its phase follows the Project (`controller.project.phases`).
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from controller.deployment.build_result import BuildFailure, ImageBuilt
from crds import conditions
from crds.conditions import Condition
from crds.objects import Deployment
from crds.reasons import DeploymentPhase, ProgressReason

QUEUED = "Queued"
SAME_SOURCE = "SameSourceBuilding"
POD_REFUSED = "PodRefused"
UNSCHEDULABLE = "Unschedulable"
SCHEDULING_GATED = "SchedulingGated"
IMAGE_PULL = "ImagePull"
REUSED = "Reused"
PROJECT_NOT_FOUND = "ProjectNotFound"
SMOKE_RUNNING = "SmokeRunning"
SMOKE_SUCCEEDED = "SmokeSucceeded"


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
    image_built = Condition(conditions.BUILT, True, "Built", f"The image is {result.image}.")
    plan = {key: value for key, value in result.plan.items() if value is not None}
    return {
        **_with_image(deployment, image_built, plan, now),
        "image": result.image,
        "plan": plan,
        "tree": result.tree,
        "buildKey": result.build_key,
        **({"dependenciesKey": result.dependencies_key} if result.dependencies_key else {}),
        **({"dependenciesDigest": result.dependencies_digest} if result.dependencies_digest else {}),
        **({"message": result.subject} if result.subject and not deployment.message else {}),
    }


_DEPENDENCY_FIELDS = ("dependenciesKey", "dependenciesDigest", "baseKey", "baseDigest")


def reused(deployment: Deployment, source: Deployment, key: str, now: datetime) -> dict[str, Any]:
    """Return the status of a Deployment that reuses the image of one with the same source."""
    message = f"Built from the same source as {source.name}: reusing its image {source.image}."
    copied_fields = ("image", "plan", "tree", "buildKey", *_DEPENDENCY_FIELDS)
    return {
        **_with_image(deployment, Condition(conditions.BUILT, True, REUSED, message), source.plan, now),
        **{name: source.status[name] for name in copied_fields if name in source.status},
        "sourceKey": key,
    }


def _with_image(
    deployment: Deployment, image_built: Condition, plan: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """Return the status of a Deployment that got its image; with a smoke run it does not count as built."""
    if "smoke" in plan:
        message = "The smoke run decides whether the deployment can become active."
        return _status(deployment, DeploymentPhase.BUILDING, _untested(image_built, message), now)
    return _status(deployment, DeploymentPhase.BUILDING, _activating(image_built), now)


def _activating(*reached: Condition) -> list[Condition]:
    message = "The image exists; the project decides which deployment is active."
    return [
        Condition(conditions.READY, None, ProgressReason.ACTIVATING, message),
        *reached,
        Condition(conditions.RECONCILING, True, ProgressReason.ACTIVATING, message),
    ]


def _untested(image_built: Condition, message: str) -> list[Condition]:
    return [
        Condition(conditions.READY, None, SMOKE_RUNNING, message),
        image_built,
        Condition(conditions.SMOKE_TESTED, None, SMOKE_RUNNING, message),
        Condition(conditions.RECONCILING, True, SMOKE_RUNNING, message),
    ]


def smoke_running(deployment: Deployment, run: str, message: str, now: datetime) -> dict[str, Any]:
    """Return the status of a Deployment whose smoke run `run` has not ended."""
    wanted = _untested(_built_condition(deployment), message)
    return {**_status(deployment, DeploymentPhase.BUILDING, wanted, now), "smokeRun": run}


def smoke_succeeded(deployment: Deployment, run: str, now: datetime) -> dict[str, Any]:
    """Return the status of a Deployment whose smoke run `run` has succeeded."""
    tested = Condition(conditions.SMOKE_TESTED, True, SMOKE_SUCCEEDED, f"The smoke run {run} succeeded.")
    wanted = _activating(_built_condition(deployment), tested)
    return {**_status(deployment, DeploymentPhase.BUILDING, wanted, now), "smokeRun": run}


def _built_condition(deployment: Deployment) -> Condition:
    built_before = conditions.find(deployment.conditions, conditions.BUILT) or {}
    reason, message = str(built_before.get("reason", "Built")), str(built_before.get("message", ""))
    return Condition(conditions.BUILT, True, reason, message)


def failed(deployment: Deployment, failure: BuildFailure, now: datetime) -> dict[str, Any]:
    """Return the final status of a Deployment that failed to build, or failed its smoke run."""
    message = failure.message[:4000]
    unmet = (
        [_built_condition(deployment), Condition(conditions.SMOKE_TESTED, False, failure.reason, message)]
        if deployment.awaits_smoke_run
        else [Condition(conditions.BUILT, False, failure.reason, message)]
    )
    wanted = [
        Condition(conditions.READY, False, failure.reason, message),
        *unmet,
        Condition(conditions.STALLED, True, failure.reason, message),
    ]
    error = {"reason": failure.reason, "message": message}
    if failure.hint:
        error["hint"] = failure.hint[:1000]
    if failure.log:
        error["log"] = failure.log[-4000:]
    return {**_status(deployment, DeploymentPhase.FAILED, wanted, now), "error": error}
