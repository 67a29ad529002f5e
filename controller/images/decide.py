"""What is to be done about a Project's old Deployments and images. Pure.

Performed by `controller.images.reconcile`. What is too many is announced first, by a pod that never runs:
whoever takes images over knows of it before they go, another controller too. After a while what is still
too many is removed by a prune pod, one at a time; once it succeeded, the objects it names are deleted, then
the pods. One that failed is followed by another, three in all; then the objects go and their images stay,
which an Event says.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controller.config import Config
from controller.images import policy
from controller.images.pod import Removal, announcement, announces, build, images_of, removal_of, succeeded
from controller.runtime.decision import Create, Decision, Delete, Note
from crds import kinds
from crds.objects import Deployment, Pod, Project

ATTEMPTS = 3
BATCH = 20
PAUSE = 60.0
"""Seconds after a failed prune pod until the next one, doubled each time."""


@dataclass(frozen=True)
class Kept:
    """A Project with all that its retention concerns; `needed` are the Deployments that live Runs name."""

    project: Project
    deployments: Sequence[Deployment]
    needed: Collection[str]
    pods: Sequence[Pod]


def decide(kept: Kept, now: datetime, config: Config) -> Decision:
    """The Decision about old Deployments and images."""
    announced = [pod for pod in kept.pods if announces(pod) and not pod.deleting]
    done = [pod for pod in kept.pods if pod.finished and not pod.deleting]
    live = [pod for pod in kept.pods if not pod.finished and not announces(pod)]
    failed = [pod for pod in done if not succeeded(pod)]
    over = [pod for pod in done if succeeded(pod)] or (failed if len(failed) >= ATTEMPTS else [])
    if over:
        return _finish(kept, over, [*done, *announced])
    if live:
        return _watch(live[0], now, config)
    without_image, removal = _wanted(kept, now)
    deletes = tuple(_deletion(deployment) for deployment in without_image)
    begun = _begun(kept, failed)
    if removal and not announced and not begun:
        body = announcement(kept.project, removal, config)
        settle = config.timing.prune_settle
        return Decision(create=(Create(kinds.POD, body),), delete=deletes, requeue_after=settle)
    removal = _and(_still(kept, removal, announced), begun)
    if not removal:
        # What was announced is needed again: by a rollback, a Run, a build.
        return Decision(delete=(*deletes, *map(_pod_deletion, (*failed, *announced))))
    pause = PAUSE * 2.0 ** (len(failed) - 1) if failed else 0.0
    left = max((_left(pod, pause, now) for pod in failed), default=0.0)
    left = max(left, *(_left(pod, config.timing.prune_settle, now) for pod in announced))
    if left > 0:
        return Decision(delete=deletes, requeue_after=left)
    notes = tuple(
        Note("PruneRetried", "images could not be removed; another pod is made", True) for _ in failed[:1]
    )
    body = build(kept.project, removal, len(failed) + 1, config)
    return Decision(create=(Create(kinds.POD, body),), delete=deletes, events=notes)


def concerns(kept: Kept, now: datetime) -> bool:
    """Whether there is anything to do, told without the pods."""
    without_image, removal = _wanted(kept, now)
    return bool(without_image or removal)


def _wanted(kept: Kept, now: datetime) -> tuple[list[Deployment], Removal]:
    """The Deployments to delete as they are, and what is to be removed from the registry first."""
    doomed = policy.beyond(kept.project, kept.deployments, kept.needed)
    gone = {deployment.name for deployment in doomed}
    staying = {d.image for d in kept.deployments if d.name not in gone}
    plain = [d for d in doomed if not d.image or d.image in staying]
    pruned = [d for d in doomed if d.image and d.image not in staying][:BATCH]
    keys = policy.unused(kept.project, kept.deployments, now)[:BATCH]
    # Those that share an image go together, or the one left would be without it.
    images = tuple(dict.fromkeys(str(d.image) for d in pruned))
    together = [d for d in doomed if d.image in images]
    return plain, Removal({d.name: d.uid for d in together}, images, tuple(keys))


def _still(kept: Kept, removal: Removal, announced: Sequence[Pod]) -> Removal:
    """What was announced, as far as it still is too much; the rest has its turn later."""
    told = {image for pod in announced for image in images_of(pod)}
    keys = {key for pod in announced for key in removal_of(pod).dependencies}
    images = {d.name: str(d.image) for d in kept.deployments}
    return Removal(
        {name: uid for name, uid in removal.deployments.items() if images[name] in told},
        tuple(image for image in removal.images if image in told),
        tuple(key for key in removal.dependencies if key in keys),
    )


def _begun(kept: Kept, failed: Sequence[Pod]) -> Removal:
    """What pods that failed may have removed already: no rollback and no retention brings it back."""
    images = {image for pod in failed for image in images_of(pod)}
    there = [d for d in kept.deployments if d.image in images and not d.deleting]
    return Removal({d.name: d.uid for d in there}, tuple(dict.fromkeys(str(d.image) for d in there)), ())


def _and(one: Removal, other: Removal) -> Removal:
    return Removal(
        {**one.deployments, **other.deployments},
        tuple(dict.fromkeys((*one.images, *other.images))),
        tuple(dict.fromkeys((*one.dependencies, *other.dependencies))),
    )


def _finish(kept: Kept, over: Sequence[Pod], done: Sequence[Pod]) -> Decision:
    """Deletes what the pods removed, or gave up; at last the pods, when nothing speaks of it any more."""
    uids = {d.uid: d for d in kept.deployments if not d.deleting}
    removals = [removal_of(pod) for pod in over]
    objects = [uids[uid] for removal in removals for uid in removal.deployments.values() if uid in uids]
    keys = {key for removal in removals for key in removal.dependencies}
    recorded = kept.project.status.get("dependencies") or []
    left = policy.without(kept.project, keys)
    if objects or len(left) != len(recorded):
        given_up = not any(succeeded(pod) for pod in over)
        message = (
            f"images of {len(objects)} deployments and {len(keys)} dependency images stay in the registry"
        )
        return Decision(
            delete=tuple({d.uid: _deletion(d) for d in objects}.values()),
            status={"dependencies": left} if len(left) != len(recorded) else None,
            events=(Note("PruneGivenUp", message, True),) if given_up else (),
            requeue_after=1.0,
        )
    return Decision(delete=tuple(_pod_deletion(pod) for pod in done), requeue_after=1.0)


def _watch(pod: Pod, now: datetime, config: Config) -> Decision:
    """Waits for a prune pod; its own deadline ends it, unless no node has room for it."""
    left = _left(pod, config.timing.unschedulable, now)
    if left > 0:
        return Decision(requeue_after=left)
    note = Note("PrunePodStuck", f"pod {pod.name} did not run in time and is taken away", True)
    return Decision(delete=(Delete(kinds.POD, pod.name, pod.uid, 0),), events=(note,), requeue_after=5.0)


def _left(pod: Pod, seconds: float, now: datetime) -> float:
    return (pod.created + timedelta(seconds=seconds) - now).total_seconds()


def _deletion(deployment: Deployment) -> Delete:
    return Delete(kinds.DEPLOYMENT, deployment.name, deployment.uid)


def _pod_deletion(pod: Pod) -> Delete:
    return Delete(kinds.POD, pod.name, pod.uid)
