"""Decision about expired Deployments and images of a Project. Pure.

Called by `controller.images.reconcile`. A deletion is announced first, by a pod that never runs: builds
that reuse images learn of it before, also in another controller. After a delay a prune pod, one at a time,
deletes the images that are still expired; after its success the objects it names are deleted, then the
pods. A failed prune pod is retried, three in total; then the objects are deleted, their images stay, and
an Event reports it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from controller.backoff import backoff_seconds
from controller.config import ControllerConfig
from controller.images import policy
from controller.images.pod import (
    ImageRemoval,
    announcement,
    build,
    images_of,
    is_announcement,
    removal_of,
    succeeded,
)
from controller.runtime.decision import Create, Decision, Delete, ObjectEvent
from crds import kinds
from crds.objects import Deployment, Pod, Project

MAX_PRUNE_PODS = 3
MAX_IMAGES_PER_POD = 20
RETRY_SECONDS = 60.0
"""Delay after a failed or refused prune pod, doubled each time."""
MAX_REFUSED_SECONDS = 3600.0


@dataclass(frozen=True)
class ObservedImages:
    """Observed state of a Project's retention; `needed` are the Deployments that live Runs name."""

    project: Project
    deployments: Sequence[Deployment]
    needed: Collection[str]
    pods: Sequence[Pod]


def decide(observed: ObservedImages, now: datetime, config: ControllerConfig) -> Decision:
    """Return the Decision about expired Deployments and images."""
    announced = [pod for pod in observed.pods if is_announcement(pod) and not pod.deleting]
    done = [pod for pod in observed.pods if pod.finished and not pod.deleting]
    live = [pod for pod in observed.pods if not pod.finished and not is_announcement(pod)]
    failed = [pod for pod in done if not succeeded(pod)]
    conclusive = [pod for pod in done if succeeded(pod)] or (failed if len(failed) >= MAX_PRUNE_PODS else [])
    if conclusive:
        return _finish(observed, conclusive, [*done, *announced])
    if live:
        return _wait_for_pod(live[0], now, config)
    without_image, removal = _expired(observed, now, config)
    deletes = tuple(_delete_without_image(observed, deployment, config) for deployment in without_image)
    started = _already_started(observed, failed)
    if removal and not announced and not started:
        body = announcement(observed.project, removal, config)
        settle = config.timing.prune_settle
        return Decision(create=(Create(kinds.POD, body),), delete=deletes, requeue_after=settle)
    removal = _union(_still_expired(observed, removal, announced), started)
    if not removal:
        # The announced images are needed again: by a rollback, a Run or a build.
        return Decision(delete=(*deletes, *map(_delete_pod, (*failed, *announced))))
    pause = RETRY_SECONDS * 2.0 ** (len(failed) - 1) if failed else 0.0
    left = max((_left(pod, pause, now) for pod in failed), default=0.0)
    left = max((left, *(_left(pod, config.timing.prune_settle, now) for pod in announced)))
    if left > 0:
        return Decision(delete=deletes, requeue_after=left)
    notes = tuple(
        ObjectEvent("PruneRetried", "Image deletion failed; creating another prune pod.", True)
        for _ in failed[:1]
    )
    body = build(observed.project, removal, len(failed) + 1, config)
    return Decision(create=(Create(kinds.POD, body),), delete=deletes, events=notes)


@dataclass(frozen=True)
class PruneRefusals:
    """Consecutive refusals of a Project's prune pod by the kube-apiserver."""

    count: int
    retry_at: datetime


def next_refusal(before: PruneRefusals | None, now: datetime) -> PruneRefusals:
    """Return the refusals with one more."""
    count = before.count + 1 if before is not None else 1
    seconds = backoff_seconds(RETRY_SECONDS, count, MAX_REFUSED_SECONDS)
    return PruneRefusals(count, now + timedelta(seconds=seconds))


def without_pod(decision: Decision, refused: PruneRefusals, now: datetime, why: str = "") -> Decision:
    """Return the Decision without the pod that is refused; `why` only if it was refused now."""
    message = f"No pod can delete old images: {why}"
    notes = (ObjectEvent("PrunePodRefused", message, True),) if why else ()
    left = (refused.retry_at - now).total_seconds()
    return replace(decision, create=(), events=notes, requeue_after=left)


def has_work(observed: ObservedImages, now: datetime, config: ControllerConfig) -> bool:
    """Return whether anything has expired, without listing pods."""
    without_image, removal = _expired(observed, now, config)
    return bool(without_image or removal)


def _expired(
    observed: ObservedImages, now: datetime, config: ControllerConfig
) -> tuple[list[Deployment], ImageRemoval]:
    """Return Deployments to delete immediately, and the images to delete from the registry first.

    A prune pod cannot delete an image of another repository, as after a change of the registry.
    """
    prefix = f"{config.repository(observed.project.name)}@"
    expired = policy.expired_deployments(
        observed.project, observed.deployments, observed.needed, config.limits_of(observed.project)
    )
    expired_names = {deployment.name for deployment in expired}
    kept_images = {d.image for d in observed.deployments if d.name not in expired_names}
    deletable = {d.image for d in expired if str(d.image).startswith(prefix)} - kept_images
    without_image = [d for d in expired if d.image not in deletable]
    with_image = [d for d in expired if d.image in deletable][:MAX_IMAGES_PER_POD]
    keys = policy.unused_dependencies(observed.project, observed.deployments, now)[:MAX_IMAGES_PER_POD]
    # Deployments that share an image are deleted together, or the remaining one would lose it.
    images = tuple(dict.fromkeys(str(d.image) for d in with_image))
    sharing = [d for d in expired if d.image in images]
    return without_image, ImageRemoval({d.name: d.uid for d in sharing}, images, tuple(keys))


def _still_expired(observed: ObservedImages, removal: ImageRemoval, announced: Sequence[Pod]) -> ImageRemoval:
    """Return the announced deletions that are still expired; others follow later."""
    announced_images = {image for pod in announced for image in images_of(pod)}
    announced_keys = {key for pod in announced for key in removal_of(pod).dependencies}
    images = {d.name: str(d.image) for d in observed.deployments}
    return ImageRemoval(
        {name: uid for name, uid in removal.deployments.items() if images[name] in announced_images},
        tuple(image for image in removal.images if image in announced_images),
        tuple(key for key in removal.dependencies if key in announced_keys),
    )


def _already_started(observed: ObservedImages, failed: Sequence[Pod]) -> ImageRemoval:
    """Return images that failed pods may have deleted already: nothing can restore them."""
    images = {image for pod in failed for image in images_of(pod)}
    present = [d for d in observed.deployments if d.image in images and not d.deleting]
    return ImageRemoval(
        {d.name: d.uid for d in present}, tuple(dict.fromkeys(str(d.image) for d in present)), ()
    )


def _union(first: ImageRemoval, second: ImageRemoval) -> ImageRemoval:
    return ImageRemoval(
        {**first.deployments, **second.deployments},
        tuple(dict.fromkeys((*first.images, *second.images))),
        tuple(dict.fromkeys((*first.dependencies, *second.dependencies))),
    )


def _finish(observed: ObservedImages, finished: Sequence[Pod], done: Sequence[Pod]) -> Decision:
    """Delete the objects of deleted or abandoned images; finally the pods, when nothing refers to them."""
    uids = {d.uid: d for d in observed.deployments if not d.deleting}
    removals = [removal_of(pod) for pod in finished]
    objects = [uids[uid] for removal in removals for uid in removal.deployments.values() if uid in uids]
    keys = {key for removal in removals for key in removal.dependencies}
    recorded = observed.project.status.get("dependencies") or []
    remaining = policy.remaining_dependencies(observed.project, keys)
    if objects or len(remaining) != len(recorded):
        given_up = not any(succeeded(pod) for pod in finished)
        message = (
            f"images of {len(objects)} deployments and {len(keys)} dependency images stay in the registry"
        )
        return Decision(
            delete=tuple({d.uid: _delete(d) for d in objects}.values()),
            status={"dependencies": remaining} if len(remaining) != len(recorded) else None,
            events=(ObjectEvent("PruneGivenUp", message, True),) if given_up else (),
            requeue_after=1.0,
        )
    return Decision(delete=tuple(_delete_pod(pod) for pod in done), requeue_after=1.0)


def _wait_for_pod(pod: Pod, now: datetime, config: ControllerConfig) -> Decision:
    """Wait for a prune pod; its own deadline ends it, unless no node can schedule it."""
    left = _left(pod, config.timing.unschedulable, now)
    if left > 0:
        return Decision(requeue_after=left)
    note = ObjectEvent("PrunePodStuck", f"pod {pod.name} did not run in time; deleting it", True)
    return Decision(delete=(Delete(kinds.POD, pod.name, pod.uid, 0),), events=(note,), requeue_after=5.0)


def _left(pod: Pod, seconds: float, now: datetime) -> float:
    return (pod.created + timedelta(seconds=seconds) - now).total_seconds()


def _delete_without_image(
    observed: ObservedImages, deployment: Deployment, config: ControllerConfig
) -> Delete:
    """Return the deletion of an object whose image stays; an Event reports one in another repository."""
    repository = config.repository(observed.project.name)
    if not deployment.image or deployment.image.startswith(f"{repository}@"):
        return _delete(deployment)
    message = f"the image {deployment.image} of {deployment.name} is not in {repository}: it stays there"
    return replace(_delete(deployment), events=(ObjectEvent("PruneGivenUp", message, True),))


def _delete(deployment: Deployment) -> Delete:
    return Delete(kinds.DEPLOYMENT, deployment.name, deployment.uid)


def _delete_pod(pod: Pod) -> Delete:
    return Delete(kinds.POD, pod.name, pod.uid)
