"""Decision about one Run, from the observed state and the time. Pure.

A Run without a pod is resolved, refused or waits; with a pod it is starting, running, stopping
or finished. The admission, which sees the whole project, creates the pods. Called by
`controller.run.reconcile`.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from controller import owner
from controller.config import ControllerConfig
from controller.run import pod_ref, requeue, resolve, startup, status
from controller.run.outcome import CANCELED, RETRY_HINT, Outcome, failed, of_pod, of_pod_reason, of_result
from controller.run.pod import answer_seconds, deadline
from controller.run.warm.binding import waited_seconds
from controller.runtime import event_map
from controller.runtime.decision import NOTHING, Decision, Delete, ObjectEvent
from crds import conditions, kinds
from crds.limits import FLUSH_SECONDS, GRACE_SECONDS
from crds.objects import Deployment, Pod, Project, Run
from crds.reasons import RunPhase, RunReason
from crds.times import parse_time


@dataclass(frozen=True)
class ObservedRun:
    """Observed state of a Run. `resolution` is None for a Run that has ended or has a pod.

    `deleted_pod` is the last seen version of its pod if that is gone.
    """

    run: Run
    project: Project | None
    deployment: Deployment | None
    pod: Pod | None
    resolution: resolve.Resolution | None = None
    deleted_pod: Pod | None = None

    @property
    def last_pod(self) -> Pod | None:
        """The pod, or what is known of it after its deletion."""
        return self.pod or self.deleted_pod


def decide(observed: ObservedRun, now: datetime, config: ControllerConfig) -> Decision:
    """Return the Decision for a Run."""
    run = observed.run
    if run.ended:
        return _after_outcome(observed, now, config.timing.node_lost_after)
    if run.deleting:
        return NOTHING
    reported = of_result(run, observed.pod)
    if reported is not None:
        wait = _eviction_wait(run, observed.pod, now)
        if wait > 0:
            return Decision(requeue_after=wait)
        return finish(run, observed.project, reported, now, pod=observed.last_pod)
    if observed.resolution is not None:
        return _without_pod(observed, observed.resolution, now)
    if observed.pod is not None and requeue.starts_again(run, observed.pod):
        return requeue.requeue(run, observed.pod, event_map.run(run.name), now)
    if observed.pod is None or observed.pod.finished:
        return finish(run, observed.project, of_pod(run, observed.pod), now, pod=observed.last_pod)
    return _with_pod(observed, observed.pod, now, config)


def _eviction_wait(run: Run, pod: Pod | None, now: datetime) -> float:
    """Return seconds to wait for the reason why the pod was stopped; 0 if known or not needed.

    The kubelet reports an eviction after the containers have ended; the runner reports before that.
    """
    result = run.result or {}
    if result.get("outcome") != "stopped" or run.cancel or run.claim is None:
        return 0.0
    if pod is None or pod.finished or pod.deleting or of_pod_reason(pod) is not None:
        return 0.0
    stopped = parse_time(str(run.claim["time"])) + timedelta(milliseconds=result["durationMs"])
    return (stopped + timedelta(seconds=GRACE_SECONDS + FLUSH_SECONDS) - now).total_seconds()


def finish(
    run: Run,
    project: Project | None,
    outcome: Outcome,
    now: datetime,
    delete: tuple[Delete, ...] = (),
    pod: Pod | None = None,
) -> Decision:
    """Return the Decision that finishes a Run and frees its slot.

    A Run that was never shown as queued or running has no owner yet, and would outlive its Project.
    """
    warning = outcome.phase == RunPhase.FAILED
    events = (
        (ObjectEvent(outcome.reason, outcome.message, warning),)
        if outcome.phase != RunPhase.SUCCEEDED
        else ()
    )
    desired = status.finished(run, outcome, now, pod)
    name = desired.get("project") or run.project
    admission = (event_map.admission(name),) if name else ()
    adoption = owner.adoption(kinds.RUN, run, project)
    return Decision(status=desired, events=events, after=adoption, delete_last=delete, enqueue=admission)


def _after_outcome(observed: ObservedRun, now: datetime, node_lost_after: float) -> Decision:
    """Delete a live pod of an ended Run that reported no result; one that reported exits without help.

    Repeat a deletion and an adoption that failed after the final status.
    """
    run, pod = observed.run, observed.pod
    decision = NOTHING
    if pod is not None and not pod.finished:
        if pod.deleting:
            decision = after_deletion(pod, now, node_lost_after)
        elif run.result is None:
            decision = Decision(delete=(_delete(pod),))
    adoption = () if run.deleting else owner.adoption(kinds.RUN, run, observed.project)
    return replace(decision, after=adoption)


def after_deletion(pod: Pod, now: datetime, node_lost_after: float) -> Decision:
    """Wait for a pod that is being deleted and that no Run waits for; delete it by force once it is lost.

    No event follows if its node does not respond; until it is gone, it may hold a slot.
    """
    left = _seconds_to_stop(pod, now, node_lost_after)
    return Decision(requeue_after=left) if left > 0 else Decision(delete=(_force_delete(pod),))


def _without_pod(observed: ObservedRun, resolution: resolve.Resolution, now: datetime) -> Decision:
    run = observed.run
    if run.cancel:
        return _with_resolved(finish(run, observed.project, CANCELED, now), observed)
    if isinstance(resolution, resolve.RunRefused):
        outcome = failed(resolution.reason, resolution.message)
        return _with_resolved(finish(run, observed.project, outcome, now), observed)
    if isinstance(resolution, resolve.RunWaiting):
        desired: dict[str, Any] = {
            **status.pending(run, status.WAITING_FOR_DEPLOYMENT, resolution.message, now),
            **status.resolved(resolution.project, resolution.deployment),
        }
        return Decision(status=desired, after=owner.adoption(kinds.RUN, run, resolution.project))
    return Decision(enqueue=(event_map.admission(resolution.project.name),))


def _with_resolved(decision: Decision, observed: ObservedRun) -> Decision:
    resolved = status.resolved(observed.project, observed.deployment)
    return replace(decision, status={**(decision.status or {}), **resolved})


def _with_pod(observed: ObservedRun, pod: Pod, now: datetime, config: ControllerConfig) -> Decision:
    run, timing = observed.run, config.timing
    if pod.deleting:
        return _stopping(observed, pod, now, timing.node_lost_after)
    if run.cancel:
        return Decision(delete=(_delete(pod),), events=(ObjectEvent("Canceling", "Stopping the crew."),))
    if run.claim is None:
        startup_state = startup.check(pod, now, timing)
        if startup_state.outcome is not None:
            return finish(run, observed.project, startup_state.outcome, now, (_delete(pod),), pod)
        delay = (
            pod_ref.STARTING_DELAY_SECONDS
            if startup_state.reason == status.STARTING
            else pod_ref.PROBLEM_DELAY_SECONDS
        )
        wait = delay - (now - pod.assigned).total_seconds()
        if run.pod is None and wait > 0:
            # Most Runs are claimed before a client could read the status Starting.
            return Decision(requeue_after=min(wait, startup_state.retry_seconds))
        desired = status.starting(run, pod, startup_state.reason, startup_state.message, now)
        adoption = owner.adoption(kinds.RUN, run, observed.project)
        return Decision(status=desired, after=adoption, requeue_after=startup_state.retry_seconds)
    claimed = parse_time(str(run.claim["time"]))
    left = _time_left(observed, pod, claimed, now, config)
    if left <= 0:
        return finish(run, observed.project, _overdue(pod), now, (_delete(pod),), pod)
    wait = pod_ref.RUNNING_DELAY_SECONDS - (now - claimed).total_seconds()
    if run.phase == RunPhase.PENDING and 0 < wait <= pod_ref.RUNNING_DELAY_SECONDS:
        return Decision(requeue_after=wait)
    adoption = owner.adoption(kinds.RUN, run, observed.project)
    return Decision(status=status.running(run, pod, now), after=adoption, requeue_after=left)


def _stopping(observed: ObservedRun, pod: Pod, now: datetime, node_lost_after: float) -> Decision:
    """Wait for a pod that is being deleted."""
    run = observed.run
    left = _seconds_to_stop(pod, now, node_lost_after)
    desired = status.running(run, pod, now) if run.claim else None
    if left > 0:
        return Decision(status=desired, requeue_after=left)
    forced = _force_delete(pod)
    if run.claim is None and not run.cancel:
        # Its crew never started: once the pod is gone, the Run gets another one or fails by the pod's reason.
        return Decision(delete=(forced,), requeue_after=requeue.POD_GONE_RETRY_SECONDS)
    lost = failed(
        RunReason.NODE_LOST,
        f"the pod did not stop after its deletion: the node does not respond; {RETRY_HINT}",
    )
    return finish(run, observed.project, CANCELED if run.cancel else lost, now, (forced,), pod)


def _seconds_to_stop(pod: Pod, now: datetime, node_lost_after: float) -> float:
    """Return seconds until a pod being deleted counts as lost; its deletionTimestamp includes the grace."""
    deleted = parse_time(str(pod.metadata["deletionTimestamp"]))
    return (deleted - now).total_seconds() + node_lost_after


def _time_left(
    observed: ObservedRun, pod: Pod, claimed: datetime, now: datetime, config: ControllerConfig
) -> float:
    """Return seconds until a claimed Run exceeds all deadlines that runner and kubelet enforce.

    The kubelet's includes the time for answers of a person; a run that asked none gets none of it.
    """
    run = observed.run
    total = pod.spec.get("activeDeadlineSeconds") or deadline(
        run, observed.deployment, observed.project, config
    )
    unused = 0 if run.has_asked else answer_seconds(pod)
    seconds = int(total) - unused - int(waited_seconds(pod)) + config.timing.node_lost_after
    return (claimed + timedelta(seconds=seconds) - now).total_seconds()


def _overdue(pod: Pod) -> Outcome:
    ready = conditions.find(pod.conditions, "Ready") or {}
    # The node controller of Kubernetes marks the pods of a silent node so; a kubelet gives a reason.
    if ready.get("status") == "False" and not ready.get("reason"):
        return failed(
            RunReason.NODE_LOST, f"the node does not respond and the run's deadline has passed; {RETRY_HINT}"
        )
    return failed(
        RunReason.DEADLINE_EXCEEDED,
        "the run exceeded its timeout and did not stop; raise spec.timeout of the Run",
    )


def _delete(pod: Pod) -> Delete:
    return Delete(kinds.POD, pod.name, pod.uid, grace_seconds=GRACE_SECONDS + FLUSH_SECONDS)


def _force_delete(pod: Pod) -> Delete:
    return Delete(kinds.POD, pod.name, pod.uid, grace_seconds=0)
