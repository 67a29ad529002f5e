"""How a Run ended, by precedence: result, cancellation, pod, container, termination message, exit code.

Pure; called by `controller.run.decide`. Without a result the caller has read Run
and pod from the apiserver just before, so that an end is never guessed too early.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crds import conditions
from crds.objects import Pod, Run
from crds.reasons import RunPhase, RunReason

CONTAINER = "crew"
MAX_MESSAGE = 4000
EXIT_REFUSED = 77
EXIT_UNAVAILABLE = 78
EXIT_RUNNER = 70
AGAIN = "create a new Run to execute it again"
_NODE_GONE = ("NodeLost", "DeletionByTaintManager", "DeletionByPodGC")
_REASONS = frozenset(str(reason) for reason in RunReason)
_EVICTIONS = ("Evicted", "Preempting", "Preempted", "NodeShutdown", "Terminated", "NodeAffinity")


@dataclass(frozen=True)
class End:
    """A final phase with its reason (of `crds.reasons.RunReason` where it is Failed)."""

    phase: RunPhase
    reason: str
    message: str


SUCCEEDED = End(RunPhase.SUCCEEDED, "Succeeded", "The crew finished.")
CANCELED = End(RunPhase.CANCELED, "Canceled", "The run was canceled.")


def failed(reason: str, message: str) -> End:
    """A failure. Crews and nodes have their say in the message: what does not print becomes a space."""
    plain = "".join(letter if letter.isprintable() or letter in "\n\t" else " " for letter in message)
    return End(RunPhase.FAILED, reason, plain[:MAX_MESSAGE])


def of_result(run: Run, pod: Pod | None) -> End | None:
    """The end that the pod reported, or None where it reported none."""
    result = run.result
    if result is None:
        return None
    return _of_outcome(run, pod, result)


def of_pod(run: Run, pod: Pod | None) -> End:
    """The end of a Run whose pod is finished or gone (None) without a result."""
    if run.cancel:
        return CANCELED
    if pod is None:
        return failed(
            RunReason.POD_DELETED,
            f"the run's pod was deleted before it reported a result; {AGAIN}",
        )
    by_pod = of_pod_reason(pod)
    if by_pod:
        return by_pod
    ended = pod.terminated(CONTAINER)
    if ended is None:
        if pod.deleting:
            return failed(
                RunReason.POD_DELETED, f"the run's pod was deleted before its crew could start; {AGAIN}"
            )
        return failed(RunReason.RUNNER_LOST, f"the pod ended without its container: {_said(pod)}; {AGAIN}")
    if ended.get("reason") == "OOMKilled":
        return failed(
            RunReason.OOM_KILLED,
            "the crew used more memory than its limit; raise spec.run.resources.limits.memory of the Project",
        )
    told = said_by(ended)
    if told.get("outcome") in ("failed", "stopped"):
        return _of_outcome(run, pod, told)
    if pod.deleting:
        return failed(RunReason.POD_DELETED, f"the run's pod was deleted while its crew ran; {AGAIN}")
    return _of_exit(run, ended)


def _of_outcome(run: Run, pod: Pod | None, told: Mapping[str, Any]) -> End:
    outcome, reason = told.get("outcome"), told.get("reason")
    message = str(told.get("message") or "")
    if outcome == "succeeded":
        return SUCCEEDED
    if outcome == "failed":
        return failed(_word(reason), message or "the crew failed; see its events")
    if run.cancel:
        return CANCELED
    by_pod = of_pod_reason(pod) if pod is not None else None
    if by_pod:
        return by_pod
    return failed(
        RunReason.POD_DELETED,
        message or f"the run's pod was deleted while its crew ran; {AGAIN}",
    )


def _word(told: object) -> str:
    """A reason of ours. A crew can write the termination message too: what is no reason is its error.

    The schema would refuse such a word, and the run would never end.
    """
    return told if isinstance(told, str) and told in _REASONS else RunReason.CREW_ERROR


def of_pod_reason(pod: Pod) -> End | None:
    """The end of a Run whose pod the cluster took away, as the pod tells it; None where it does not."""
    reason = str(pod.status.get("reason") or "")
    disruption = conditions.find(pod.conditions, "DisruptionTarget") or {}
    if reason == "DeadlineExceeded":
        return failed(RunReason.DEADLINE_EXCEEDED, "the run took longer than its timeout; raise spec.timeout")
    if reason in _NODE_GONE or (disruption.get("status") == "True" and disruption["reason"] in _NODE_GONE):
        return failed(RunReason.NODE_LOST, f"the node was lost: {_said(pod)}; {AGAIN}")
    if reason in _EVICTIONS or disruption.get("status") == "True":
        said = _said(pod)
        if "ephemeral" in said.lower():
            return failed(
                RunReason.STORAGE_EXCEEDED,
                f"{said}; raise spec.run.resources.limits.ephemeral-storage of the Project",
            )
        return failed(RunReason.EVICTED, f"the node evicted the pod: {said}; {AGAIN}")
    return None


def _of_exit(run: Run, ended: Mapping[str, Any]) -> End:
    code = int(ended.get("exitCode") or 0)
    said = str(said_by(ended).get("message") or ended.get("message") or ended.get("reason") or "").strip()
    why = f": {said}" if said else ""
    if code == EXIT_REFUSED:
        return failed(
            RunReason.ALREADY_EXECUTED,
            f"the run was given to no second pod{why}; a name executes once: create a Run with a new one",
        )
    if code == EXIT_UNAVAILABLE and run.claim is None:
        return failed(
            RunReason.START_TIMEOUT,
            f"the pod could not claim the run in time{why}; see whether pods reach the service crewyard-api, "
            "then create a new Run",
        )
    words = {
        0: "the runner ended without reporting a result",
        EXIT_UNAVAILABLE: "the runner could not reach the facade to report its result",
        EXIT_RUNNER: "the runner failed",
        137: "the runner was killed (SIGKILL)",
    }
    message = words.get(code, f"the runner ended with exit code {code}")
    return failed(RunReason.RUNNER_LOST, f"{message}{why}; {AGAIN}")


def said_by(ended: Mapping[str, Any]) -> Mapping[str, Any]:
    """The runner's termination message, {} where there is none that can be read."""
    try:
        found = json.loads(str(ended.get("message") or ""))
    except (ValueError, RecursionError):  # the crew may have written anything
        return {}
    return found if isinstance(found, dict) else {}


def _said(pod: Pod) -> str:
    disruption = conditions.find(pod.conditions, "DisruptionTarget") or {}
    said = pod.status.get("message") or disruption.get("message") or pod.status.get("reason")
    return str(said or "no reason given").strip()
