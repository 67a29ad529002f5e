"""Deadlines of build pods before, around and after the build. Pure.

Called by `controller.deployment.decide`. The kubelet enforces the deadline of the build itself
from the pod's start on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controller.config import Timing
from controller.deployment.build_result import BuildFailure
from controller.deployment.status import IMAGE_PULL, REUSED, SCHEDULING_GATED, UNSCHEDULABLE
from controller.pods.termination import ended_at
from controller.runtime.decision import Decision, Delete
from crds import conditions, kinds
from crds.objects import Deployment, Pod
from crds.reasons import BuildReason
from crds.times import parse_time

STOP_GRACE_SECONDS = 5
"""Grace period of an unneeded build pod; it has no state to save."""
MIN_WAIT_SECONDS = 1.0
_IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_CREATE_REASONS = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")


@dataclass(frozen=True)
class PodWait:
    """`seconds` until the next check; 0 if the pod must be deleted.

    With a `failure` the build has failed; `reason` and `message` state what delays the pod.
    """

    seconds: float
    reason: str = ""
    message: str = ""
    failure: BuildFailure | None = None


def wait(build: Pod, now: datetime, timing: Timing) -> PodWait:
    """Return how long to wait for an unfinished pod."""
    if build.deleting:
        # A pod on an unreachable node is not deleted without force.
        return PodWait(
            _left(parse_time(str(build.metadata["deletionTimestamp"])), timing.node_lost_after, now)
        )
    scheduled = conditions.find(build.conditions, "PodScheduled") or {}
    if scheduled.get("status") != "True":
        return _unscheduled(build, scheduled, now, timing)
    since = build.scheduled_at
    stuck = _startup_failure(build)
    if stuck is not None:
        reason, failure = stuck
        # The node pulls the image of a container when the one before it has ended.
        left = _left(max(since, ended_at(build) or since), timing.image_pull, now)
        return PodWait(left, reason, failure.message) if left > 0 else PodWait(0.0, reason, failure=failure)
    if any("waiting" not in (c.get("state") or {"waiting"}) for c in build.containers):
        deadline = int(build.spec.get("activeDeadlineSeconds") or timing.build_timeout)
        return PodWait(_left(since, deadline + timing.node_lost_after, now))
    return PodWait(_left(since, timing.start_timeout, now))


def clean_up(deployment: Deployment, pods: Sequence[Pod], now: datetime, timing: Timing) -> Decision:
    """Delete build pods `build_pod_ttl` after their end, and running ones that are no longer needed."""
    built = conditions.find(deployment.conditions, conditions.BUILT) or {}
    needless = deployment.failed or built.get("reason") == REUSED
    delete, again = list(delete_live_pods(pods)) if needless else [], []
    for build in pods:
        if build.deleting or not build.finished:
            continue
        left = _left(ended_at(build) or build.created, timing.build_pod_ttl, now)
        if left <= 0:
            delete.append(Delete(kinds.POD, build.name, build.uid))
        else:
            again.append(left)
    return Decision(delete=tuple(delete), requeue_after=min(again) + 1.0 if again else None)


def delete_live_pods(pods: Sequence[Pod]) -> tuple[Delete, ...]:
    """Return deletions of the live pods."""
    live = (build for build in pods if not build.finished and not build.deleting)
    return tuple(Delete(kinds.POD, build.name, build.uid, STOP_GRACE_SECONDS) for build in live)


def _unscheduled(build: Pod, scheduled: Mapping[str, Any], now: datetime, timing: Timing) -> PodWait:
    message = str(scheduled.get("message") or "")
    left = _left(build.created, timing.unschedulable, now)
    if scheduled.get("reason") == SCHEDULING_GATED:
        failure = BuildFailure(
            BuildReason.BUILD_FAILED,
            "the queue that the pod's labels name did not admit the build pod within "
            f"{timing.unschedulable} s: {message or 'no reason given'}",
            "Raise the quota of the queue, or unschedulable_seconds of the installation's limits.",
        )
        waits = f"The pod waits until a queue admits it: {message}"
        return PodWait(left, SCHEDULING_GATED, waits) if left > 0 else PodWait(0.0, failure=failure)
    if left > 0:
        waits = f"No node can schedule the pod: {message}"
        return PodWait(left, UNSCHEDULABLE, waits) if message else PodWait(left)
    failure = BuildFailure(
        BuildReason.BUILD_FAILED,
        f"no node could schedule the build pod within {timing.unschedulable} s: "
        f"{message or 'no reason given'}",
        "Lower spec.build.resources.requests of the Project, or add a node.",
    )
    return PodWait(0.0, failure=failure)


def _startup_failure(build: Pod) -> tuple[str, BuildFailure] | None:
    """Return why a container cannot start, if waiting does not help: the reason while it waits, the end."""
    for container in build.containers:
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason, message = waiting.get("reason"), waiting.get("message")
        if reason in _IMAGE_REASONS:
            return IMAGE_PULL, BuildFailure(
                BuildReason.BUILD_FAILED,
                f"the image {container.get('image') or 'of the build'} cannot be pulled: {message or reason}",
                "Check the images in the settings of the installation: its nodes cannot pull this one.",
            )
        if reason in _CREATE_REASONS:
            return reason, BuildFailure(
                BuildReason.BUILD_FAILED,
                f"the container {container.get('name')} cannot start: {message or reason}",
                "Check the keys of the referenced Secrets, and spec.build.resources of the Project.",
            )
    return None


def _left(since: datetime, seconds: float, now: datetime) -> float:
    left = (since + timedelta(seconds=seconds) - now).total_seconds()
    return max(left, MIN_WAIT_SECONDS) if left > 0 else 0.0
