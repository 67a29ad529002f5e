"""Requeue of a Run whose pod waited for a free run slot until its start timeout. Pure.

The API counts slots too, in the transaction of the claim. It may allow fewer than the controller:
a plan was lowered after the pods were created, or the two have different plans for a moment. No pod
had the run then, so nothing has failed: the pod is deleted and the Run gets another one in its turn.
Called by `controller.run.decide` and `reconcile`.
"""

from datetime import datetime

from controller.run import status
from controller.run.outcome import CONTAINER, EXIT_UNAVAILABLE, termination_message
from controller.runtime.decision import Decision, Delete, ObjectEvent
from controller.runtime.workqueue import ReconcileKey
from crds import kinds
from crds.objects import Pod, Run

POD_GONE_RETRY_SECONDS = 1.0
"""Poll interval for the deletion of the pod, which may cause no event."""
WAITED = "the facade let this run wait for a place"
"""Last termination message of every released runner; the exit code is that of an unavailable API."""


def gave_up_waiting(run: Run, pod: Pod | None) -> bool:
    """Return whether the pod ended unclaimed because no run slot was free."""
    if pod is None or not pod.finished or run.claim is not None or run.result is not None:
        return False
    terminated = pod.terminated(CONTAINER) or {}
    if run.cancel or run.ended or terminated.get("exitCode") != EXIT_UNAVAILABLE:
        return False
    return WAITED in str(termination_message(terminated).get("message") or "")


def requeue(run: Run, pod: Pod, key: ReconcileKey, now: datetime) -> Decision:
    """Unset the recorded pod, then delete it; the next reconcile completes an interrupted requeue.

    In this order, since a recorded pod that is gone counts as lost.
    """
    if run.pod is not None:
        message = "Pod gave up waiting for a free run slot; the run is queued again."
        note = ObjectEvent("GivenBack", message)
        return Decision(status=status.requeued(run, message, now), events=(note,), enqueue=(key,))
    return Decision(delete=(Delete(kinds.POD, pod.name, pod.uid, 0),), requeue_after=POD_GONE_RETRY_SECONDS)
