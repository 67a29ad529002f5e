"""What keeps a pod from starting, and for how long that is borne. Pure; called by `controller.run.decide`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controller.config import Timing
from controller.run import status
from controller.run.outcome import CONTAINER, End, failed
from crds import conditions
from crds.objects import Pod
from crds.reasons import RunReason
from crds.times import parse_time

IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
RUNNING_MARGIN = 30
"""Seconds by which a runner that is running, and gives up by itself, may exceed the start timeout."""


@dataclass(frozen=True)
class Start:
    """Where a start stands: `end` where it is given up; else look again after `again` seconds."""

    reason: str
    message: str
    again: float
    end: End | None = None


def look(pod: Pod, now: datetime, timing: Timing) -> Start:
    """How an unclaimed Run's pod is getting on."""
    scheduled = conditions.find(pod.conditions, "PodScheduled") or {}
    if scheduled.get("status") != "True":
        return _unscheduled(pod, str(scheduled.get("message") or ""), now, timing)
    since = parse_time(scheduled["lastTransitionTime"])
    state = next((c.get("state") or {} for c in pod.containers if c.get("name") == CONTAINER), {})
    waiting = state.get("waiting") or {}
    reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    if reason in IMAGE_REASONS:
        limit = 0 if reason == "InvalidImageName" else timing.image_pull
        end = failed(
            RunReason.IMAGE_PULL_FAILED,
            f"the image could not be pulled: {message}; check the registry and spec.pod.imagePullSecrets",
        )
        return _until(since, limit, now, status.IMAGE_PULL, f"The image is not there yet: {message}", end)
    limit = timing.start_timeout
    if "running" in state:
        # The runner counts from its own start, before which its image may have been pulled.
        since = _began(state["running"]) or since
        limit += RUNNING_MARGIN
    why = f" ({reason}: {message})" if message else ""
    end = failed(
        RunReason.START_TIMEOUT,
        f"the pod did not start its crew within {timing.start_timeout} s{why}; create a new Run to try again",
    )
    stuck = reason.isalnum() and reason not in ("ContainerCreating", "PodInitializing")
    shown = (reason, f"The pod does not start: {message}") if stuck else (status.STARTING, _STARTING)
    return _until(since, limit, now, *shown, end)


def _began(running: Mapping[str, Any]) -> datetime | None:
    told = running.get("startedAt")
    return parse_time(str(told)) if told else None


_STARTING = "The pod is being started."


def _until(since: datetime, limit: float, now: datetime, reason: str, message: str, end: End) -> Start:
    left = (since + timedelta(seconds=limit) - now).total_seconds()
    return Start(reason, message, max(left, 0.1), end if left <= 0 else None)


def _unscheduled(pod: Pod, message: str, now: datetime, timing: Timing) -> Start:
    limit = timing.unschedulable
    end = failed(
        RunReason.START_TIMEOUT,
        f"no node had room for the pod within {limit} s: {message or 'no reason given'}; "
        "lower spec.run.resources.requests of the Project or add a node",
    )
    if not message:
        return _until(pod.created, limit, now, status.STARTING, _STARTING, end)
    return _until(pod.created, limit, now, status.UNSCHEDULABLE, f"No node has room: {message}", end)
