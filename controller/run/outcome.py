"""Outcome of a Run, by precedence: result, cancellation, pod, container, termination message, exit code.

Pure. Called by `controller.run.decide`. Without a result the caller has just read Run and pod from
the apiserver, so an outcome is never derived from a stale cache.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.pods.termination import exceeded_disk_limit, termination_message
from crds import conditions
from crds.objects import Pod, Run
from crds.reasons import RunPhase, RunReason

CONTAINER = "crew"
MAX_MESSAGE_LENGTH = 4000
EXIT_REFUSED = 77
EXIT_UNAVAILABLE = 78
EXIT_RUNNER = 70
_EXIT_MESSAGES = {
    0: "the runner ended without reporting a result",
    EXIT_REFUSED: "the API server refused the pod that had claimed the run: it no longer knows the run, "
    "for instance because its Project was deleted, or its database was restored",
    EXIT_UNAVAILABLE: "the runner could not reach the API to report its result",
    EXIT_RUNNER: "the runner failed",
    137: "the runner was killed (SIGKILL)",
}
RETRY_HINT = "create a new Run to execute it again"
_NODE_GONE = ("NodeLost", "DeletionByTaintManager", "DeletionByPodGC")
_REASONS = frozenset(str(reason) for reason in RunReason)
_EVICTIONS = ("Evicted", "NodeShutdown", "Terminated", "NodeAffinity")
_PREEMPTIONS = ("Preempting", "Preempted", "PreemptionByScheduler", "WorkloadEvictedDueToPreempted")
"""Of the kubelet, of the scheduler, of Kueue."""


@dataclass(frozen=True)
class Outcome:
    """Final phase with its reason (of `crds.reasons.RunReason` if it is Failed)."""

    phase: RunPhase
    reason: str
    message: str


SUCCEEDED = Outcome(RunPhase.SUCCEEDED, "Succeeded", "The crew finished.")
CANCELED = Outcome(RunPhase.CANCELED, "Canceled", "The run was canceled.")


def failed(reason: str, message: str) -> Outcome:
    """Return a failure. Crews and nodes contribute text, so unprintable characters become spaces."""
    text = "".join(letter if letter.isprintable() or letter in ("\n", "\t") else " " for letter in message)
    return Outcome(RunPhase.FAILED, reason, text[:MAX_MESSAGE_LENGTH])


def of_result(run: Run, pod: Pod | None) -> Outcome | None:
    """Return the outcome that the pod reported, or None."""
    result = run.result
    if result is None:
        return None
    if result.get("outcome") == "succeeded":
        return SUCCEEDED
    if result.get("outcome") != "failed":
        if run.cancel:
            return CANCELED
        if pod is not None and (pod_outcome := of_pod_reason(pod)):
            return pod_outcome
    return _of_crew(result)


def of_pod(run: Run, pod: Pod | None) -> Outcome:
    """Return the outcome of a Run whose pod finished or was deleted (None) without a result."""
    if run.cancel:
        return CANCELED
    if pod is None:
        return failed(
            RunReason.POD_DELETED,
            f"the run's pod was deleted before it reported a result; {RETRY_HINT}",
        )
    pod_outcome = of_pod_reason(pod)
    if pod_outcome:
        return pod_outcome
    terminated = pod.terminated(CONTAINER)
    if terminated is None:
        if pod.deleting:
            return failed(
                RunReason.POD_DELETED, f"the run's pod was deleted before its crew started; {RETRY_HINT}"
            )
        return failed(
            RunReason.RUNNER_LOST,
            f"the pod ended without an exit code of the runner: {_pod_message(pod)}; {RETRY_HINT}",
        )
    if terminated.get("reason") == "OOMKilled":
        return failed(
            RunReason.OOM_KILLED,
            "the crew used more memory than its limit; raise spec.run.resources.limits.memory of the Project",
        )
    message = termination_message(terminated)
    if message.get("outcome") in ("failed", "stopped"):
        return _of_crew(message)
    if pod.deleting:
        return failed(RunReason.POD_DELETED, f"the run's pod was deleted while its crew ran; {RETRY_HINT}")
    return _of_exit(run, pod, terminated)


def _of_crew(ended: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a crew that failed or was stopped, as the runner tells it."""
    message = ended.get("message")
    if ended.get("outcome") == "failed":
        return failed(_known_reason(ended.get("reason")), str(message or "the crew failed; see its events"))
    return failed(
        RunReason.POD_DELETED,
        str(message or f"the run's pod was deleted while its crew ran; {RETRY_HINT}"),
    )


def _known_reason(reason: object) -> str:
    """Return a valid reason. A crew can write the termination message too: other words become CrewError.

    The CRD schema would reject an unknown reason, and the run would never end.
    """
    return reason if isinstance(reason, str) and reason in _REASONS else RunReason.CREW_ERROR


def of_pod_reason(pod: Pod) -> Outcome | None:
    """Return the outcome of a Run whose pod the cluster stopped, by the pod's status; None if it has none."""
    reason = pod.status.get("reason")
    disruption = of_disruption(pod) or {}
    if reason == "DeadlineExceeded":
        return failed(RunReason.DEADLINE_EXCEEDED, "the run exceeded its timeout; raise spec.timeout")
    if reason in _NODE_GONE or disruption.get("reason") in _NODE_GONE:
        return failed(RunReason.NODE_LOST, f"the node was lost: {_pod_message(pod)}; {RETRY_HINT}")
    if reason in _PREEMPTIONS or disruption.get("reason") in _PREEMPTIONS:
        return failed(
            RunReason.PREEMPTED, f"a pod of higher priority took its place: {_pod_message(pod)}; {RETRY_HINT}"
        )
    if reason in _EVICTIONS or disruption:
        message = _pod_message(pod)
        if exceeded_disk_limit(message):
            return failed(
                RunReason.STORAGE_EXCEEDED,
                f"{message}; raise spec.run.resources.limits.ephemeral-storage of the Project",
            )
        return failed(RunReason.EVICTED, f"the node evicted the pod: {message}; {RETRY_HINT}")
    return None


def of_disruption(pod: Pod) -> Mapping[str, Any] | None:
    """Return the condition by which the cluster, or Kueue (TerminationTarget), stopped the pod; else None."""
    for kind in ("DisruptionTarget", "TerminationTarget"):
        condition = conditions.find(pod.conditions, kind)
        if condition is not None and condition.get("status") == "True":
            return condition
    return None


def _of_exit(run: Run, pod: Pod, terminated: Mapping[str, Any]) -> Outcome:
    code, reported = int(terminated["exitCode"]), termination_message(terminated)
    found = reported.get("message") if reported else terminated.get("message") or terminated.get("reason")
    text = str(found or "").strip()
    detail = f": {text}" if text else ""
    claimed_by = run.claim["podUid"] if run.claim else None
    if code == EXIT_REFUSED and claimed_by != pod.uid:
        return failed(
            RunReason.ALREADY_EXECUTED,
            f"the run was not given to a second pod{detail}; each name executes once: "
            "create a Run with a new name",
        )
    if code == EXIT_UNAVAILABLE and run.claim is None:
        return failed(
            RunReason.START_TIMEOUT,
            f"the pod could not claim the run in time{detail}; check that pods reach the Service "
            "crewyard-api, then create a new Run",
        )
    message = _EXIT_MESSAGES.get(code, f"the runner ended with exit code {code}")
    return failed(RunReason.RUNNER_LOST, f"{message}{detail}; {RETRY_HINT}")


def _pod_message(pod: Pod) -> str:
    disruption = of_disruption(pod) or {}
    message = pod.status.get("message") or disruption.get("message") or pod.status.get("reason")
    return str(message or "no reason given").strip()
