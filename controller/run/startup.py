"""Startup failures of run pods and their deadlines. Pure. Called by `controller.run.decide`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controller.config import Timing
from controller.run import status
from controller.run.outcome import CONTAINER, Outcome, failed
from crds import conditions
from crds.objects import Pod
from crds.reasons import RunReason
from crds.times import parse_time

IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
RUNNING_MARGIN_SECONDS = 30
"""Margin beyond the start timeout for a running runner, which enforces the timeout too."""


@dataclass(frozen=True)
class StartupState:
    """State of a startup: `outcome` if it failed; else check again after `retry_seconds`."""

    reason: str
    message: str
    retry_seconds: float
    outcome: Outcome | None = None


def max_seconds(timing: Timing) -> int:
    """Return the most seconds that `check` allows from a pod's node assignment to its claim."""
    return max(timing.start_timeout, timing.image_pull) + timing.start_timeout + RUNNING_MARGIN_SECONDS


def check(pod: Pod, now: datetime, timing: Timing) -> StartupState:
    """Return the startup state of an unclaimed Run's pod."""
    scheduled = conditions.find(pod.conditions, "PodScheduled") or {}
    if scheduled.get("status") != "True":
        return _unscheduled(pod, scheduled, now, timing)
    # A pod that waited for a run was scheduled before it got this one.
    since = pod.bound_at or pod.scheduled_at
    state = next((c.get("state") or {} for c in pod.containers if c.get("name") == CONTAINER), {})
    waiting = state.get("waiting") or {}
    reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    if reason in IMAGE_REASONS:
        limit = 0 if reason == "InvalidImageName" else timing.image_pull
        outcome = failed(
            RunReason.IMAGE_PULL_FAILED,
            f"the image pull failed: {message}; check the registry and spec.pod.imagePullSecrets",
        )
        return _state(since, limit, now, status.IMAGE_PULL, f"Pulling the image: {message}", outcome)
    limit = timing.start_timeout
    started = state.get("running", state.get("terminated"))
    if started is not None:
        # The runner counts from its own start, after the image pull. If it has ended at its timeout, with the
        # reason, the phase of the pod follows a moment later.
        # A container that could not be started has the year 1970.
        since = pod.bound_at or max(_running_since(started) or since, since)
        limit += RUNNING_MARGIN_SECONDS
    why = f" ({reason}: {message})" if message else ""
    outcome = failed(
        RunReason.START_TIMEOUT,
        f"the pod did not start its crew within {timing.start_timeout} s{why}; create a new Run to try again",
    )
    has_problem = reason.isalnum() and reason not in ("ContainerCreating", "PodInitializing")
    condition = (
        (reason, f"The pod does not start: {message}") if has_problem else (status.STARTING, _STARTING)
    )
    return _state(since, limit, now, *condition, outcome)


def _running_since(running: Mapping[str, Any]) -> datetime | None:
    started_at = running.get("startedAt")
    return parse_time(str(started_at)) if started_at else None


_STARTING = "The pod is starting."


def _state(
    since: datetime, limit: float, now: datetime, reason: str, message: str, outcome: Outcome
) -> StartupState:
    left = (since + timedelta(seconds=limit) - now).total_seconds()
    return StartupState(reason, message, max(left, 0.1), outcome if left <= 0 else None)


def _unscheduled(pod: Pod, scheduled: Mapping[str, Any], now: datetime, timing: Timing) -> StartupState:
    limit, message = timing.unschedulable, str(scheduled.get("message") or "")
    if scheduled.get("reason") == status.SCHEDULING_GATED:
        outcome = failed(
            RunReason.START_TIMEOUT,
            f"the queue that the pod's labels name did not admit the pod within {limit} s; raise its quota, "
            "or unschedulable_seconds of the installation's limits, and create a new Run",
        )
        waits = f"The pod waits until a queue admits it: {message}"
        return _state(pod.created, limit, now, status.SCHEDULING_GATED, waits, outcome)
    outcome = failed(
        RunReason.START_TIMEOUT,
        f"no node could schedule the pod within {limit} s: {message or 'no reason given'}; "
        "lower spec.run.resources.requests of the Project or add a node",
    )
    if not message:
        return _state(pod.created, limit, now, status.STARTING, _STARTING, outcome)
    return _state(
        pod.created, limit, now, status.UNSCHEDULABLE, f"No node can schedule the pod: {message}", outcome
    )
