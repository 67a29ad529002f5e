"""Status patches of a Run, one function per state. Pure; the only module that builds its conditions."""

from datetime import datetime
from typing import Any

from controller.run import pod_ref
from controller.run.outcome import Outcome
from crds import conditions
from crds.conditions import Condition
from crds.objects import Deployment, Pod, Project, Run
from crds.reasons import RunPhase
from crds.times import format_time, parse_time

QUEUED = "Queued"
WAITING_FOR_DEPLOYMENT = "WaitingForDeployment"
STARTING = "Starting"
UNSCHEDULABLE = "Unschedulable"
SCHEDULING_GATED = "SchedulingGated"
IMAGE_PULL = "ImagePull"
IMAGE_NOT_VERIFIED = "ImageNotVerified"
POD_NAME_TAKEN = "PodNameTaken"
RUNNING = "Running"
WAITING_FOR_INPUT = "WaitingForInput"


def _status(run: Run, phase: RunPhase, wanted: list[Condition], now: datetime) -> dict[str, Any]:
    return {
        "observedGeneration": run.generation,
        "phase": str(phase),
        "conditions": conditions.merge(run.conditions, wanted, run.generation, now),
    }


def _admitted(run: Run, pod: Pod | None) -> list[Condition]:
    if pod is not None or pod_ref.pod_uid(run):
        # Written long after the pod's creation: see docs/decisions/0006-the-pods-record-comes-late.md.
        since = pod.assigned if pod is not None else None
        return [Condition(conditions.ADMITTED, True, "Admitted", "The run has a free slot.", since)]
    admitted = conditions.find(run.conditions, conditions.ADMITTED)
    if admitted is None:
        return []
    return [
        Condition(conditions.ADMITTED, admitted["status"] == "True", admitted["reason"], admitted["message"])
    ]


def _unfinished(reason: str, message: str) -> list[Condition]:
    return [
        Condition(conditions.SUCCEEDED, None, reason, message),
        Condition(conditions.COMPLETE, False, reason, message),
        Condition(conditions.RECONCILING, True, reason, message),
    ]


def resolved(project: Project | None, deployment: Deployment | None) -> dict[str, Any]:
    """Return the fields that record what a Run was resolved to."""
    found = {"project": project, "deployment": deployment}
    return {field: obj.name for field, obj in found.items() if obj is not None}


def pending(run: Run, reason: str, message: str, now: datetime) -> dict[str, Any]:
    """Return the status of a Run that waits without a pod, with the reason."""
    return _status(run, RunPhase.PENDING, [*_unfinished(reason, message), *_admitted(run, None)], now)


def queued(run: Run, project: str, deployment: str, limit: int, now: datetime) -> dict[str, Any]:
    """Return the status of a Run above its plan's concurrency; its position is computed on read."""
    message = f"Waiting for one of the {limit} run slots of project {project}."
    wanted = [*_unfinished(QUEUED, message), Condition(conditions.ADMITTED, False, QUEUED, message)]
    return {**_status(run, RunPhase.PENDING, wanted, now), "project": project, "deployment": deployment}


def requeued(run: Run, message: str, now: datetime) -> dict[str, Any]:
    """Return the status of a Run whose pod got no slot from the API: queued again, without a pod."""
    wanted = [*_unfinished(QUEUED, message), Condition(conditions.ADMITTED, False, QUEUED, message)]
    return {**_status(run, RunPhase.PENDING, wanted, now), "pod": None}


def pod_refused(run: Run, reason: str, message: str, now: datetime) -> dict[str, Any]:
    """Return the status of an admitted Run whose pod is rejected; the condition Admitted dates the reason."""
    desired = _status(run, RunPhase.PENDING, _unfinished(reason, message), now)
    since = pod_refused_since(run, reason, now)
    refused = Condition(conditions.ADMITTED, None, reason, message, since)
    # Not merged with the old one: each reason has its own time limit.
    desired["conditions"] += conditions.merge((), [refused], run.generation, now)
    return desired


def pod_refused_since(run: Run, reason: str, now: datetime) -> datetime:
    """Return the time of the first rejection of a Run's pod for that reason; `now` if this is the first."""
    admitted = conditions.find(run.conditions, conditions.ADMITTED) or {}
    if (admitted.get("status"), admitted.get("reason")) != ("Unknown", reason):
        return now
    return parse_time(str(admitted["lastTransitionTime"]))


def has_taken_name(run: Run) -> bool:
    """Return whether another object had the name of the Run's pod at the last try."""
    admitted = conditions.find(run.conditions, conditions.ADMITTED) or {}
    return admitted.get("status") == "Unknown" and admitted.get("reason") == POD_NAME_TAKEN


def starting(run: Run, pod: Pod, reason: str, message: str, now: datetime) -> dict[str, Any]:
    """Return the status of a Run that its pod has not claimed yet, with the reason."""
    wanted = [*_unfinished(reason, message), *_admitted(run, pod)]
    return {**_status(run, RunPhase.PENDING, wanted, now), **pod_ref.status_fields(run, pod)}


def running(run: Run, pod: Pod, now: datetime) -> dict[str, Any]:
    """Return the status of a claimed Run."""
    wanted = [*_unfinished(RUNNING, "The crew is running."), *_admitted(run, pod)]
    if run.input_requests:
        message = _question(run)
        wanted = [*_unfinished(WAITING_FOR_INPUT, message), *_admitted(run, pod)]
        wanted.append(Condition(conditions.WAITING_FOR_INPUT, True, WAITING_FOR_INPUT, message))
    claimed = (run.claim or {}).get("time") or format_time(now)
    return {
        **_status(run, RunPhase.RUNNING, wanted, now),
        **pod_ref.status_fields(run, pod),
        "startTime": claimed,
    }


def _question(run: Run) -> str:
    """Return the first open question, and how to answer it."""
    first, *more = run.input_requests
    others = f" ({len(more)} more in status.inputRequests)" if more else ""
    refusal = f" The last answer was not accepted: {first['refusal']}." if first.get("refusal") else ""
    return (
        f"The crew asks {first['prompt']!r}{others}. Append {{request: {first['request']}, value: …}} to "
        f"spec.answers before {first['expirationTime']}.{refusal}"
    )


def finished(run: Run, outcome: Outcome, now: datetime, pod: Pod | None = None) -> dict[str, Any]:
    """Return the final status; it never changes."""
    failed = outcome.phase == RunPhase.FAILED
    wanted = [
        Condition(conditions.SUCCEEDED, outcome.phase == RunPhase.SUCCEEDED, outcome.reason, outcome.message),
        Condition(conditions.COMPLETE, True, outcome.reason, outcome.message),
        *_admitted(run, pod),
    ]
    if failed:
        wanted.append(Condition(conditions.STALLED, True, outcome.reason, outcome.message))
    started = run.status.get("startTime") or (run.claim or {}).get("time")
    return {
        **_status(run, outcome.phase, wanted, now),
        **pod_ref.status_fields(run, pod),
        "startTime": started,
        "completionTime": format_time(now),
        "durationMs": _duration(run, started, now),
        "error": {"reason": outcome.reason, "message": outcome.message} if failed else None,
        **({"inputRequests": []} if run.has_asked else {}),
    }


def _duration(run: Run, started: str | None, now: datetime) -> int:
    """Return the duration measured by the runner, else since the claim; 0 if the crew never started."""
    if run.result is not None and "durationMs" in run.result:
        return int(run.result["durationMs"])
    if started is None:
        return 0
    return max(0, round((now - parse_time(started)).total_seconds() * 1000))
