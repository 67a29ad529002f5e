"""How long a build pod is waited for, and when it is removed. Pure.

Called by `controller.deployment.decide`. The time of a build itself is the pod's
own deadline, which the kubelet keeps from its start on; here is what surrounds it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controller.config import Timing
from controller.deployment.build_result import Failure
from controller.deployment.status import REUSED
from controller.runtime.decision import Decision, Delete
from crds import conditions, kinds
from crds.objects import Deployment, Pod
from crds.reasons import BuildReason
from crds.times import parse_time

STOP_GRACE = 5
"""Seconds that an unwanted build pod has to stop; it has nothing to save."""
MIN_WAIT = 1.0
_NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_NO_START = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")


@dataclass(frozen=True)
class Wait:
    """`left` are seconds until the next look; none are left where the pod is to be taken away.

    With a `failure` the build is over; `message` is what keeps the pod, for people.
    """

    left: float
    message: str = ""
    failure: Failure | None = None


def wait(build: Pod, now: datetime, timing: Timing) -> Wait:
    """How long to wait for an unfinished pod."""
    if build.deleting:
        # A node that does not answer never lets its pod go by itself.
        return Wait(_left(parse_time(str(build.metadata["deletionTimestamp"])), timing.lost_after, now))
    scheduled = conditions.find(build.conditions, "PodScheduled") or {}
    if scheduled.get("status") != "True":
        return _unscheduled(build, scheduled, now, timing)
    since = parse_time(scheduled["lastTransitionTime"])
    stuck = _stuck(build)
    if stuck is not None:
        left = _left(since, timing.image_pull, now)
        return Wait(left, stuck.message) if left > 0 else Wait(0.0, failure=stuck)
    if any("waiting" not in (c.get("state") or {"waiting": 0}) for c in build.containers):
        deadline = int(build.spec.get("activeDeadlineSeconds") or timing.build_timeout)
        return Wait(_left(since, deadline + timing.lost_after, now))
    return Wait(_left(since, timing.start_timeout, now))


def ended(build: Pod) -> datetime | None:
    """When the last container of a finished pod ended."""
    times = [((c.get("state") or {}).get("terminated") or {}).get("finishedAt") for c in build.containers]
    return max((parse_time(text) for text in times if text), default=None)


def tidy(deployment: Deployment, pods: Sequence[Pod], now: datetime, timing: Timing) -> Decision:
    """Deletes build pods an hour after their end, and those that still run although nobody waits."""
    built = conditions.find(deployment.conditions, conditions.BUILT) or {}
    needless = deployment.failed or built.get("reason") == REUSED
    delete, again = list(stops(pods)) if needless else [], []
    for build in pods:
        if build.deleting or not build.finished:
            continue
        left = _left(ended(build) or build.created, timing.build_pod_kept, now)
        if left <= 0:
            delete.append(Delete(kinds.POD, build.name, build.uid))
        else:
            again.append(left)
    return Decision(delete=tuple(delete), requeue_after=min(again) + 1.0 if again else None)


def stops(pods: Sequence[Pod]) -> tuple[Delete, ...]:
    """The ends of pods that nobody needs any more."""
    live = (build for build in pods if not build.finished and not build.deleting)
    return tuple(Delete(kinds.POD, build.name, build.uid, STOP_GRACE) for build in live)


def _unscheduled(build: Pod, scheduled: Mapping[str, Any], now: datetime, timing: Timing) -> Wait:
    said = str(scheduled.get("message") or "")
    left = _left(build.created, timing.unschedulable, now)
    if left > 0:
        return Wait(left, f"No node has room: {said}" if said else "")
    failure = Failure(
        BuildReason.BUILD_FAILED,
        f"no node had room for the build pod within {timing.unschedulable} s: {said or 'no reason given'}",
        "Lower spec.build.resources.requests of the Project, or add a node.",
    )
    return Wait(0.0, failure=failure)


def _stuck(build: Pod) -> Failure | None:
    """Why a container cannot start, where it is no matter of time."""
    for container in build.containers:
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason, said = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
        if reason in _NO_IMAGE:
            return Failure(
                BuildReason.BUILD_FAILED,
                f"the image {container.get('image') or 'of the build'} cannot be pulled: {said or reason}",
                "The installation's settings name an image that its nodes cannot pull.",
            )
        if reason in _NO_START:
            return Failure(
                BuildReason.BUILD_FAILED,
                f"the container {container.get('name')} cannot start: {said or reason}",
                "A Secret that is named may be missing a key, or a limit may be too small.",
            )
    return None


def _left(since: datetime, seconds: float, now: datetime) -> float:
    left = (since + timedelta(seconds=seconds) - now).total_seconds()
    return max(left, MIN_WAIT) if left > 0 else 0.0
