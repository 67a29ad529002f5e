"""Binding of waiting pods to admitted Runs. Pure. Called by the admission.

One write binds: a patch of the pod, only if the pod is unchanged since it was read. So a pod gets one run at
most; that a run is executed by one pod at most is left to the claim, as for every pod. A pod that is bound is
the Run's as if it had been created for it: it has the label and the owner by which a Run finds its pod.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from controller.config import ControllerConfig
from controller.owner import controller_reference
from controller.pods import waiting as waiting_pod
from controller.pods.placement import NOT_DISRUPTED
from controller.run import pod
from controller.run.outcome import CONTAINER
from controller.run.resolve import RunReady
from controller.run.warm.pod import WarmTemplate
from controller.runtime.decision import Patch
from crds import entrypoints, kinds, names
from crds.limits import ask_timeout
from crds.objects import Pod, Run
from crds.times import format_time, parse_time


def assign(
    runs: Sequence[tuple[Run, RunReady]],
    pods: Iterable[Pod],
    source: WarmTemplate,
    now: datetime,
    max_age: float,
) -> dict[str, Pod]:
    """Return the waiting pods for the first of `runs` that can use one, by the Run's name."""
    waiting = waiting_pod.oldest_first(pod for pod in pods if _is_waiting(pod, source, now, max_age))
    eligible = (run for run, ready in runs if _suits(run, ready, source))
    return {run.name: pod for run, pod in zip(eligible, waiting, strict=False)}


def _is_waiting(pod: Pod, source: WarmTemplate, now: datetime, max_age: float) -> bool:
    """Return whether a pod was made from `source`, executes its runner and has no run."""
    if pod.run is not None or not waiting_pod.executes(pod, CONTAINER):
        return False
    if pod.labels.get(names.LABEL_COMPONENT) != names.COMPONENT_RUN:
        # An admission policy reserves this label for the controller: anyone else may set the others.
        return False
    is_young = waiting_pod.is_young(pod, now, max_age)
    return is_young and pod.labels.get(names.LABEL_WARM) == source.fingerprint


def still_waits(current: Pod, seen: Pod) -> bool:
    """Return whether a pod that has changed since it was seen waiting is the same one and still waits."""
    is_same = current.uid == seen.uid and current.labels == seen.labels
    return is_same and current.phase == "Running" and not current.deleting


def _suits(run: Run, ready: RunReady, source: WarmTemplate) -> bool:
    """Return whether a Run executes what the waiting pods have imported."""
    plan = ready.deployment.plan
    imported = entrypoints.target(None, plan)
    return ready.deployment.uid == source.deployment.uid and imported == entrypoints.target(
        run.spec.get("entrypoint"), plan
    )


def bind(run: Run, ready: RunReady, waiting: Pod, config: ControllerConfig, now: datetime) -> Patch:
    """Return the patch that makes a waiting pod the Run's."""
    seconds = pod.deadline(run, ready.deployment, ready.project, config)
    seconds += ask_timeout(ready.project, config.limits_of(ready.project))
    metadata: dict[str, Any] = {
        "uid": waiting.uid,
        "labels": {names.LABEL_RUN: run.name},
        "annotations": {
            **NOT_DISRUPTED,
            **config.placements.for_run(ready.project.plan).annotations,
            names.ANNOTATION_BOUND_AT: format_time(now),
        },
        "ownerReferences": [controller_reference(kinds.RUN, run)],
    }
    spec = {"activeDeadlineSeconds": waiting_pod.deadline_seconds(waiting, seconds, now)}
    body = {"metadata": metadata, "spec": spec}
    return Patch(kinds.POD, waiting.name, body, waiting.resource_version, subresource=None)


def waited_seconds(bound: Pod) -> float:
    """Return how long a pod waited for its run, which its activeDeadlineSeconds contains."""
    started = bound.status.get("startTime")
    if not bound.warm or not started:
        return 0.0
    return max(0.0, (bound.assigned - parse_time(str(started))).total_seconds())
