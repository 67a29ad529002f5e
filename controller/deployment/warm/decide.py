"""Decision about the pods of a Project that wait for a build. Pure. Called by the reconciler of these pods.

It does not see pods with a build. A pod is deleted only if it is unchanged since it was read, so a pod that
got a build meanwhile stays. A pod that ended while it waited keeps its place for a minute, so that a pod
which cannot start is not replaced without a pause.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from controller.config import ControllerConfig
from controller.deployment.warm.template import BuilderTemplate, build
from controller.pods import waiting
from controller.pods.termination import ended_at
from controller.runtime.decision import Create, Decision, Delete, ObjectEvent
from crds import kinds, names
from crds.objects import Pod

ENDED_SECONDS = 60.0
ENDED_EVENT = "WarmBuilderEnded"


@dataclass(frozen=True)
class BuilderPool:
    """Pods of a Project that wait for a build. `template` is None if none can start.

    `size` is how many should wait.
    """

    size: int
    template: BuilderTemplate | None
    pods: Sequence[Pod]


def decide(pool: BuilderPool, new_names: Sequence[str], now: datetime, config: ControllerConfig) -> Decision:
    """Return the Decision that keeps `size` pods waiting; new ones get the first of `new_names`."""
    ours = [pod for pod in pool.pods if not pod.deleting]
    usable = [pod for pod in ours if not pod.finished and _is_usable(pod, pool.template, now, config)]
    kept = waiting.oldest_first(usable)[: pool.size]
    ended = [pod for pod in ours if pod.finished]
    pausing = [pod for pod in ended if pool.template is not None and _pause_seconds(pod, now) > 0]
    delete = tuple(
        Delete(
            kinds.POD,
            pod.name,
            pod.uid,
            resource_version=pod.resource_version,
            events=(_ended_event(pod),) if pod in ended else (),
        )
        for pod in ours
        if pod not in kept and pod not in pausing
    )
    if delete or pool.template is None:
        # First the old ones: a quota may have no room for both.
        after = waiting.seconds_to_next_look(pool.size, pool.template is not None)
        return Decision(delete=delete, requeue_after=after)
    missing = max(0, pool.size - len(kept) - len(pausing))
    created = (build(pool.template, name, config, now.timestamp()) for name in new_names[:missing])
    looks = [waiting.LOOK_SECONDS, *(_pause_seconds(pod, now) for pod in pausing)]
    looks += [config.limits.warm_seconds - (now - pod.created).total_seconds() for pod in kept]
    return Decision(
        create=tuple(Create(kinds.POD, body) for body in created), requeue_after=max(0.1, min(looks))
    )


def _is_usable(pod: Pod, template: BuilderTemplate | None, now: datetime, config: ControllerConfig) -> bool:
    is_young = waiting.is_young(pod, now, config.limits.warm_seconds)
    label = pod.labels.get(names.LABEL_WARM_BUILDER)
    return is_young and template is not None and label == template.fingerprint


def _pause_seconds(pod: Pod, now: datetime) -> float:
    return ENDED_SECONDS - (now - (ended_at(pod) or pod.created)).total_seconds()


def _ended_event(pod: Pod) -> ObjectEvent:
    ended = pod.terminated("assemble") or {}
    reason = ended.get("reason") or pod.status.get("reason") or "no reason given"
    return ObjectEvent(ENDED_EVENT, f"Pod {pod.name} ended while it waited for a build: {reason}", True)
