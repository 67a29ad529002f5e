"""The status patches of a Run, one function per state. Pure; the only place that composes its conditions."""

from datetime import datetime
from typing import Any

from controller.run import pod_ref
from controller.run.outcome import End
from crds import conditions
from crds.conditions import Condition
from crds.objects import Pod, Run
from crds.reasons import RunPhase
from crds.times import format_time, parse_time

QUEUED = "Queued"
WAITING_FOR_DEPLOYMENT = "WaitingForDeployment"
STARTING = "Starting"
UNSCHEDULABLE = "Unschedulable"
IMAGE_PULL = "ImagePull"
RUNNING = "Running"


def _status(run: Run, phase: RunPhase, wanted: list[Condition], now: datetime) -> dict[str, Any]:
    return {
        "observedGeneration": run.generation,
        "phase": str(phase),
        "conditions": conditions.merge(run.conditions, wanted, run.generation, now),
    }


def _admitted(run: Run, pod: Pod | None) -> list[Condition]:
    if pod is not None or pod_ref.uid(run):
        return [Condition(conditions.ADMITTED, True, "Admitted", "The run has its place.")]
    found = conditions.find(run.conditions, conditions.ADMITTED)
    if found is None:
        return []
    return [Condition(conditions.ADMITTED, found["status"] == "True", found["reason"], found["message"])]


def _unfinished(reason: str, message: str) -> list[Condition]:
    return [
        Condition(conditions.SUCCEEDED, None, reason, message),
        Condition(conditions.COMPLETE, False, reason, message),
        Condition(conditions.RECONCILING, True, reason, message),
    ]


def pending(run: Run, reason: str, message: str, now: datetime) -> dict[str, Any]:
    """A Run that waits without a pod, with why."""
    return _status(run, RunPhase.PENDING, [*_unfinished(reason, message), *_admitted(run, None)], now)


def queued(run: Run, project: str, deployment: str, limit: int, now: datetime) -> dict[str, Any]:
    """A Run above its plan's concurrency. Its position is computed when read, never stored."""
    message = f"Waiting for one of the {limit} places of project {project}."
    wanted = [*_unfinished(QUEUED, message), Condition(conditions.ADMITTED, False, QUEUED, message)]
    return {**_status(run, RunPhase.PENDING, wanted, now), "project": project, "deployment": deployment}


def given_back(run: Run, message: str, now: datetime) -> dict[str, Any]:
    """A Run whose pod had no place at the facade: it is in the queue again, without a pod."""
    wanted = [*_unfinished(QUEUED, message), Condition(conditions.ADMITTED, False, QUEUED, message)]
    return {**_status(run, RunPhase.PENDING, wanted, now), "pod": None}


def refused(run: Run, reason: str, message: str, now: datetime) -> dict[str, Any]:
    """A Run that has its turn but whose pod cannot be made; since when, its condition Admitted says."""
    wanted = [*_unfinished(reason, message), Condition(conditions.ADMITTED, None, reason, message)]
    return _status(run, RunPhase.PENDING, wanted, now)


def refused_since(run: Run, now: datetime) -> datetime:
    """Since when a Run's pod cannot be made; now, where it is the first time."""
    admitted = conditions.find(run.conditions, conditions.ADMITTED)
    if admitted is None or admitted.get("status") != "Unknown":
        return now
    return parse_time(str(admitted["lastTransitionTime"]))


def starting(run: Run, pod: Pod, reason: str, message: str, now: datetime) -> dict[str, Any]:
    """A Run whose pod has not claimed it yet, with why."""
    wanted = [*_unfinished(reason, message), *_admitted(run, pod)]
    return {**_status(run, RunPhase.PENDING, wanted, now), **pod_ref.of(run, pod)}


def running(run: Run, pod: Pod, now: datetime) -> dict[str, Any]:
    """A Run that its pod has claimed."""
    wanted = [*_unfinished(RUNNING, "The crew is running."), *_admitted(run, pod)]
    claimed = (run.claim or {}).get("time") or format_time(now)
    return {**_status(run, RunPhase.RUNNING, wanted, now), **pod_ref.of(run, pod), "startTime": claimed}


def ended(run: Run, end: End, now: datetime, pod: Pod | None = None) -> dict[str, Any]:
    """The end. Nothing of it changes any more."""
    failed = end.phase == RunPhase.FAILED
    wanted = [
        Condition(conditions.SUCCEEDED, end.phase == RunPhase.SUCCEEDED, end.reason, end.message),
        Condition(conditions.COMPLETE, True, end.reason, end.message),
        *_admitted(run, pod),
    ]
    if failed:
        wanted.append(Condition(conditions.STALLED, True, end.reason, end.message))
    started = run.status.get("startTime") or (run.claim or {}).get("time")
    return {
        **_status(run, end.phase, wanted, now),
        **pod_ref.of(run, pod),
        "startTime": started,
        "completionTime": format_time(now),
        "durationMs": _duration(run, started, now),
        "error": {"reason": end.reason, "message": end.message} if failed else None,
    }


def _duration(run: Run, started: str | None, now: datetime) -> int:
    """As the runner measured it, else from the claim to now; 0 where the crew never started."""
    if run.result is not None and "durationMs" in run.result:
        return int(run.result["durationMs"])
    if started is None:
        return 0
    return max(0, round((now - parse_time(started)).total_seconds() * 1000))
