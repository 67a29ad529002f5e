"""Requeue of a Run whose pod ended before it claimed the run. Pure.

The API counts slots too, in the transaction of the claim. It may allow fewer than the controller:
a plan was lowered after the pods were created, or the two have different plans for a moment. And the
cluster takes pods away: a node is drained or lost, a pod of higher priority needs the room, or the
kubelet rejects the pod that the scheduler gave it. No pod had the run then, so nothing has failed:
the pod is deleted and the Run gets another one in its turn.
Likewise for a warm pod that ended before it asked for the run, mostly one whose import of the entrypoint
failed: the next pod reports that. One that the API denied the run, or did not answer, ends the Run as any
other pod: the next one would get the same answer.
A claim that is still on its way makes the next pod end without starting the crew. Called by
`controller.run.decide` and `reconcile`.
"""

from datetime import datetime

from controller.pods.termination import termination_message
from controller.run import status
from controller.run.outcome import CONTAINER, EXIT_REFUSED, EXIT_UNAVAILABLE, of_disruption
from controller.runtime.decision import Decision, Delete, ObjectEvent
from controller.runtime.workqueue import ReconcileKey
from crds import kinds
from crds.objects import Pod, Run

POD_GONE_RETRY_SECONDS = 1.0
"""Poll interval for the deletion of the pod, which may cause no event."""
WAITED = "the facade let this run wait for a place"
"""Last termination message of every released runner; the exit code is that of an unavailable API."""


TAKEN_WITHIN_SECONDS = 3600.0
"""A pod created later than this after its Run is not replaced when the cluster takes it away."""
REJECTED_WITHIN_SECONDS = 300.0
"""The same where the kubelet rejects it: mostly until it has counted the pods that ended."""
_REJECTION_REASONS = ("OutOf", "UnexpectedAdmissionError", "NodeShutdown", "NodeAffinity", "Evicted")
"""Starts of a pod's reason: OutOfcpu, OutOfmemory, OutOfpods; a device plugin that does not answer; a node
that shuts down, got other labels, or lacks memory or disk."""
_KUBELET_REASONS = ("Terminated", "Preempting")
"""Reasons of a pod that the kubelet ends: its node shuts down, or needs the room for a critical pod."""
# Not TerminationByKubelet: where a node lacks memory or disk, another pod could meet the same again.
_DISRUPTION_REASONS = (
    "EvictionByEvictionAPI",
    "PreemptionByScheduler",
    "DeletionByTaintManager",
    "DeletionByPodGC",
    "WorkloadEvictedDueToPreempted",
)
"""Reasons in the pod's condition (`of_disruption`) after which a Run without a claim gets another pod."""


def starts_again(run: Run, pod: Pod | None) -> bool:
    """Return whether the pod ended unclaimed: it was warm, had no run slot, or the cluster took it away."""
    if pod is None or not pod.finished or run.claim is not None or run.result is not None:
        return False
    if run.cancel or run.ended:
        return False
    if pod.warm and not _was_not_granted(pod):
        return True
    age = (pod.created - run.created).total_seconds()
    if _disruption(pod) is not None:
        return age < TAKEN_WITHIN_SECONDS
    if _rejection(pod) is not None:
        return age < REJECTED_WITHIN_SECONDS
    return _waited(pod)


def _was_not_granted(pod: Pod) -> bool:
    """Return whether the pod asked for the run, and was denied or got no answer until its timeout."""
    terminated = pod.terminated(CONTAINER) or {}
    if terminated.get("exitCode") == EXIT_REFUSED:
        return True
    was_stopped = termination_message(terminated).get("outcome") == "stopped"
    return terminated.get("exitCode") == EXIT_UNAVAILABLE and not was_stopped


def _waited(pod: Pod) -> bool:
    terminated = pod.terminated(CONTAINER) or {}
    if terminated.get("exitCode") != EXIT_UNAVAILABLE:
        return False
    return WAITED in str(termination_message(terminated).get("message") or "")


def _disruption(pod: Pod) -> str | None:
    disruption, reason = of_disruption(pod) or {}, pod.status.get("reason")
    if disruption.get("reason") not in _DISRUPTION_REASONS and reason not in _KUBELET_REASONS:
        return None
    return str(disruption.get("message") or pod.status.get("message") or disruption.get("reason") or reason)


def _rejection(pod: Pod) -> str | None:
    """Return why the kubelet did not admit the pod, None if it did: then it shows the containers."""
    reason = str(pod.status.get("reason") or "")
    if pod.status.get("containerStatuses") or not reason.startswith(_REJECTION_REASONS):
        return None
    return str(pod.status.get("message") or reason)


def requeue(run: Run, pod: Pod, key: ReconcileKey, now: datetime) -> Decision:
    """Unset the recorded pod, then delete it; the next reconcile completes an interrupted requeue.

    In this order, since a recorded pod that is gone counts as lost.
    """
    if run.pod is not None:
        taken = _disruption(pod) or _rejection(pod)
        cause = (
            f"ended before its crew started ({taken})"
            if taken is not None
            else "ended before it claimed the run"
            if pod.warm
            else "gave up waiting for a free run slot"
        )
        message = f"Pod {cause}; the run is queued again."
        note = ObjectEvent("GivenBack", message)
        return Decision(status=status.requeued(run, message, now), events=(note,), enqueue=(key,))
    return Decision(delete=(Delete(kinds.POD, pod.name, pod.uid, 0),), requeue_after=POD_GONE_RETRY_SECONDS)
