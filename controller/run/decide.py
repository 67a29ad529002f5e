"""What is to be done about one Run. Pure: from what was observed and the time to a Decision.

A Run without a pod is accepted, refused or waits; with one it is started,
running, being stopped, or at its end. Pods are not made here but by the
admission, which sees the whole project.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from controller import owner
from controller.config import Config
from controller.run import pod_ref, requeue, resolve, startup, status
from controller.run.outcome import CANCELED, End, failed, of_pod, of_pod_reason, of_result
from controller.run.pod import deadline
from controller.runtime import event_map
from controller.runtime.decision import NOTHING, Decision, Delete, Note
from controller.runtime.workqueue import Key
from crds import conditions, kinds
from crds.limits import FLUSH, GRACE
from crds.objects import Deployment, Pod, Project, Run
from crds.reasons import RunPhase, RunReason
from crds.times import parse_time


@dataclass(frozen=True)
class Observed:
    """What a look at a Run found. `variables` are the Secret's names, None where they do not matter."""

    run: Run
    project: Project | None
    deployment: Deployment | None
    pod: Pod | None
    variables: frozenset[str] | None = None


def decide(seen: Observed, now: datetime, config: Config) -> Decision:
    """The Decision for a Run."""
    run = seen.run
    if run.ended:
        return _after_the_end(seen)
    if run.deleting:
        return NOTHING
    reported = of_result(run, seen.pod)
    if reported is not None:
        left = _untold(run, seen.pod, now)
        if left > 0:
            return Decision(requeue_after=left)
        # One that was never shown as Running has not been given its owner yet.
        adoption = owner.adoption(kinds.RUN, run, seen.project)
        return replace(ending(run, reported, now, pod=seen.pod), after=adoption)
    if seen.pod is None and pod_ref.uid(run) is None:
        return _without_pod(seen, now)
    if seen.pod is not None and requeue.in_vain(run, seen.pod):
        return requeue.give_back(run, seen.pod, event_map.run(run.name), now)
    if seen.pod is None or seen.pod.finished:
        return ending(run, of_pod(run, seen.pod), now, pod=seen.pod)
    return _with_pod(seen, seen.pod, now, config)


def _untold(run: Run, pod: Pod | None, now: datetime) -> float:
    """Seconds for which the pod may still tell why it was stopped; 0 where it has, or need not.

    The kubelet says that it evicted a pod when its containers have ended; the runner reports before that.
    """
    result = run.result or {}
    if result.get("outcome") != "stopped" or run.cancel or run.claim is None:
        return 0.0
    if pod is None or pod.finished or pod.deleting or of_pod_reason(pod) is not None:
        return 0.0
    stopped = parse_time(str(run.claim["time"])) + timedelta(milliseconds=int(result.get("durationMs") or 0))
    return (stopped + timedelta(seconds=GRACE + FLUSH) - now).total_seconds()


def ending(
    run: Run, end: End, now: datetime, delete: tuple[Delete, ...] = (), pod: Pod | None = None
) -> Decision:
    """The Decision that ends a Run; its place in the project's queue is free then."""
    warning = end.phase == RunPhase.FAILED
    events = (Note(end.reason, end.message, warning),) if end.phase != RunPhase.SUCCEEDED else ()
    wanted = status.ended(run, end, now, pod)
    project = wanted.get("project") or run.project
    freed = (event_map.admission(project),) if project else ()
    return Decision(delete=delete, status=wanted, events=events, enqueue=freed)


def _after_the_end(seen: Observed) -> Decision:
    """A pod that outlives its Run without having reported must go; one that has reported goes by itself."""
    pod = seen.pod
    if pod is None or pod.finished or pod.deleting or seen.run.result is not None:
        return NOTHING
    return Decision(delete=(_removal(pod),))


def _without_pod(seen: Observed, now: datetime) -> Decision:
    run = seen.run
    if run.cancel:
        return ending(run, CANCELED, now)
    verdict = resolve.accept(run, seen.project, seen.deployment)
    if isinstance(verdict, resolve.Ready) and seen.variables is not None:
        verdict = resolve.missing_variable(verdict, seen.variables) or verdict
    if isinstance(verdict, resolve.Refused):
        return _refusal(seen, verdict, now)
    adoption = owner.adoption(kinds.RUN, run, seen.project)
    if isinstance(verdict, resolve.Waiting):
        wanted: dict[str, Any] = {
            **status.pending(run, status.WAITING_FOR_DEPLOYMENT, verdict.message, now),
            "project": verdict.project.name,
            "deployment": verdict.deployment.name,
        }
        return Decision(status=wanted, after=adoption)
    return Decision(enqueue=_admission(seen))


def _refusal(seen: Observed, verdict: resolve.Refused, now: datetime) -> Decision:
    decision = ending(seen.run, failed(verdict.reason, verdict.message), now)
    resolved: dict[str, Any] = {}
    if seen.project is not None:
        resolved["project"] = seen.project.name
    if seen.deployment is not None:
        resolved["deployment"] = seen.deployment.name
    return Decision(
        status={**(decision.status or {}), **resolved}, events=decision.events, enqueue=decision.enqueue
    )


def _with_pod(seen: Observed, pod: Pod, now: datetime, config: Config) -> Decision:
    run, timing = seen.run, config.timing
    if pod.deleting:
        return _stopping(run, pod, now, timing.lost_after)
    if run.cancel:
        return Decision(delete=(_removal(pod),), events=(Note("Canceling", "The crew is being stopped."),))
    if run.claim is None:
        began = startup.look(pod, now, timing)
        if began.end is not None:
            return ending(run, began.end, now, (_removal(pod),), pod)
        shown_after = pod_ref.SLOW if began.reason == status.STARTING else pod_ref.LATE
        unseen = shown_after - (now - pod.created).total_seconds()
        if run.pod is None and unseen > 0:
            # Most starts are claimed before anybody could read that they have begun.
            return Decision(requeue_after=min(unseen, began.again))
        wanted = status.starting(run, pod, began.reason, began.message, now)
        adoption = owner.adoption(kinds.RUN, run, seen.project)
        return Decision(status=wanted, after=adoption, requeue_after=began.again)
    left = _time_left(seen, now, config)
    if left <= 0:
        return ending(run, _overdue(pod), now, (_removal(pod),), pod)
    claimed = parse_time(str(run.claim["time"]))
    unseen = pod_ref.BRIEF - (now - claimed).total_seconds()
    if run.phase == RunPhase.PENDING and 0 < unseen <= pod_ref.BRIEF:
        return Decision(requeue_after=unseen)
    adoption = owner.adoption(kinds.RUN, run, seen.project)
    return Decision(status=status.running(run, pod, now), after=adoption, requeue_after=left)


def _stopping(run: Run, pod: Pod, now: datetime, lost_after: float) -> Decision:
    """Waits for a pod that is being deleted; its deletionTimestamp includes the grace period."""
    by = parse_time(str(pod.metadata["deletionTimestamp"])) + timedelta(seconds=lost_after)
    left = (by - now).total_seconds()
    wanted = status.running(run, pod, now) if run.claim else None
    if left > 0:
        return Decision(status=wanted, requeue_after=left)
    lost = failed(RunReason.NODE_LOST, "the pod was told to stop and its node does not answer")
    forced = Delete(kinds.POD, pod.name, pod.uid, grace_seconds=0)
    return ending(run, CANCELED if run.cancel else lost, now, (forced,), pod)


def _time_left(seen: Observed, now: datetime, config: Config) -> float:
    """Seconds until a claimed Run is beyond every deadline that runner and kubelet keep."""
    claimed = parse_time(str((seen.run.claim or {})["time"]))
    spec = seen.pod.spec if seen.pod else {}
    total = spec.get("activeDeadlineSeconds") or deadline(seen.run, seen.deployment, seen.project, config)
    by = claimed + timedelta(seconds=int(total) + config.timing.lost_after)
    return (by - now).total_seconds()


def _overdue(pod: Pod) -> End:
    ready = conditions.find(pod.conditions, "Ready") or {}
    if ready.get("reason") == "NodeStatusUnknown" or ready.get("status") == "Unknown":
        return failed(RunReason.NODE_LOST, "the node does not answer and the run's time is over")
    return failed(RunReason.DEADLINE_EXCEEDED, "the run took longer than its timeout and did not stop itself")


def _removal(pod: Pod) -> Delete:
    return Delete(kinds.POD, pod.name, pod.uid, grace_seconds=GRACE + FLUSH)


def _admission(seen: Observed) -> tuple[Key, ...]:
    name = seen.run.project or (seen.project.name if seen.project else None)
    return (event_map.admission(name),) if name else ()
