"""A pod that was told to wait for a place until its start timeout gives the Run back to the queue. Pure.

The facade counts the places too, in the transaction that gives one. It may know of
fewer than the controller: a plan was lowered after the pods were made, or the two
have other plans for a moment. Nobody had the run then, so nothing has failed: the
pod goes, and the Run gets another one when it is its turn. Called by
`controller.run.decide` and `reconcile`.
"""

from datetime import datetime

from controller.run import status
from controller.run.outcome import CONTAINER, EXIT_UNAVAILABLE, said_by
from controller.runtime.decision import Decision, Delete, Note
from controller.runtime.workqueue import Key
from crds import kinds
from crds.objects import Pod, Run

AGAIN = 1.0
"""Seconds until it is looked whether the pod is gone: nothing else may tell of it."""
WAITED = "the facade let this run wait for a place"
"""What every released runner says last then; the exit code is that of a facade that is away."""


def in_vain(run: Run, pod: Pod | None) -> bool:
    """Whether the pod has ended without having had the run, since there was no place for it."""
    if pod is None or not pod.finished or run.claim is not None or run.result is not None:
        return False
    ended = pod.terminated(CONTAINER) or {}
    if run.cancel or run.ended or ended.get("exitCode") != EXIT_UNAVAILABLE:
        return False
    return WAITED in str(said_by(ended).get("message") or "")


def give_back(run: Run, pod: Pod, again: Key, now: datetime) -> Decision:
    """Forgets the pod and then removes it; a crash in between is found by the next look.

    In this order: a recorded pod that is gone counts as lost.
    """
    if run.pod is not None:
        message = "The facade had no place for it until its pod gave up; waiting for another one."
        note = Note("GivenBack", message)
        return Decision(status=status.given_back(run, message, now), events=(note,), enqueue=(again,))
    return Decision(delete=(Delete(kinds.POD, pod.name, pod.uid, 0),), requeue_after=AGAIN)
