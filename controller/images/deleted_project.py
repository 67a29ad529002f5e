"""Image cleanup for a deleted Project. Pure.

Called by `controller.images.reconcile`. Prune pods without an owner delete the images, since owned pods
are deleted with the Project; a failed one is retried, three in total, one that a quota refuses for a quarter
of an hour. Images of Projects deleted while no controller ran, or left after that, stay in the registry. The
cleanup delays neither the deletion nor a new Project of the same name: that one waits for the images these
pods name, as for pods of its own, and its reconcile goes on with the cleanup, or starts it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controller.config import ControllerConfig
from controller.images import pod as prune_pod
from controller.images.decide import MAX_PRUNE_PODS, RETRY_SECONDS
from controller.images.pod import ImageRemoval, succeeded
from controller.images.policy import dependency_keys
from controller.runtime.decision import Create, Decision, Delete
from crds import kinds
from crds.objects import Deployment, Pod, Project
from plan.keys import base_keys

MAX_REFUSED_PODS = 5
"""Refusals of a pod by the kube-apiserver, a growing pause apart, after which the images stay."""


MAX_IMAGES_PER_POD = 200
"""Their names are in one environment variable: Linux starts no program with one above 131,072 bytes."""


@dataclass(frozen=True)
class RemainingImages:
    """Last seen version of a Project, and its images in the registry."""

    project: Project
    removal: ImageRemoval


def remaining_images(
    project: Project, deployments: Iterable[Deployment], config: ControllerConfig
) -> RemainingImages:
    """Return the images that a Project would leave behind; only those in its own repository."""
    prefix = f"{config.repository(project.name)}@"
    images = (str(one.image) for one in deployments if one.image and str(one.image).startswith(prefix))
    keys = (str(entry["key"]) for entry in project.status.get("dependencies") or ())
    return RemainingImages(project, ImageRemoval({}, tuple(sorted(set(images))), tuple(sorted(set(keys)))))


def unused_images(
    remaining: RemainingImages, deployments: Iterable[Deployment], config: ControllerConfig
) -> RemainingImages:
    """Return the images that no Deployment uses but those deleted with the Project.

    Without the images in which a build of another Deployment may be about to install its dependencies.
    """
    others = [one for one in deployments if one.owner_uid(kinds.PROJECT) != remaining.project.uid]
    images = {one.image for one in others}
    keys = {key for one in others for key in dependency_keys(one)}
    if others:
        keys.update(base_keys(config.base_images))
    removal = ImageRemoval(
        {},
        tuple(image for image in remaining.removal.images if image not in images),
        tuple(key for key in remaining.removal.dependencies if key not in keys),
    )
    return RemainingImages(remaining.project, removal)


def decide(
    remaining: RemainingImages | None, pods: Sequence[Pod], now: datetime, config: ControllerConfig
) -> Decision:
    """Return the Decision about a deleted Project; `remaining` if this process saw the Project."""
    attempts: dict[str, list[Pod]] = {}
    for pod in pods:
        if not pod.owner_uids and not pod.deleting:
            attempts.setdefault(_first_name(pod), []).append(pod)
    bodies = _bodies(remaining, config) if remaining is not None else ()
    missing = [Create(kinds.POD, body) for body in bodies if body["metadata"]["name"] not in attempts]
    decisions = [_decide_attempts(prune_pods, now, config) for prune_pods in attempts.values()]
    waits = [one.requeue_after for one in decisions if one.requeue_after is not None]
    return Decision(
        create=(*missing, *(child for one in decisions for child in one.create)),
        delete=tuple(deletion for one in decisions for deletion in one.delete),
        requeue_after=min(waits, default=None),
    )


def _decide_attempts(prune_pods: Sequence[Pod], now: datetime, config: ControllerConfig) -> Decision:
    """Return the Decision about the attempts to delete the same images."""
    live = [pod for pod in prune_pods if not pod.finished]
    if live:
        return _wait_for_pod(live[0], now, config)
    if any(map(succeeded, prune_pods)) or len(prune_pods) >= MAX_PRUNE_PODS:
        return Decision(delete=tuple(Delete(kinds.POD, pod.name, pod.uid) for pod in prune_pods))
    latest = max(prune_pods, key=lambda pod: (pod.created, pod.name))
    pause = timedelta(seconds=RETRY_SECONDS * 2.0 ** (len(prune_pods) - 1))
    wait = (latest.created + pause - now).total_seconds()
    if wait > 0:
        return Decision(requeue_after=wait)
    return Decision(create=(Create(kinds.POD, _retry_body(latest, len(prune_pods) + 1)),))


def _bodies(remaining: RemainingImages, config: ControllerConfig) -> Iterator[dict[str, Any]]:
    """Yield the prune pods, each of a part of the images; the first also has the dependency images."""
    images, keys = remaining.removal.images, remaining.removal.dependencies
    for start in range(0, max(len(images), bool(keys)), MAX_IMAGES_PER_POD):
        part = ImageRemoval({}, images[start : start + MAX_IMAGES_PER_POD], () if start else keys)
        body = prune_pod.build(remaining.project, part, 1, config)
        yield {**body, "metadata": {**body["metadata"], "ownerReferences": []}}


def _retry_body(pod: Pod, attempt: int) -> dict[str, Any]:
    """Return the same pod with the next name: nothing else of the Project is known."""
    metadata = {key: pod.metadata[key] for key in ("labels", "annotations") if key in pod.metadata}
    spec = {key: value for key, value in pod.spec.items() if key in _SPEC_FIELDS}
    return {
        "metadata": {**metadata, "name": f"{_first_name(pod)}-a{attempt}", "ownerReferences": []},
        "spec": spec,
    }


def _first_name(pod: Pod) -> str:
    """Return the name of the first attempt: "prune-" and a hash, which may begin with "a" too."""
    return "-".join(pod.name.split("-")[:2])


_SPEC_FIELDS = (
    *(
        "restartPolicy",
        "activeDeadlineSeconds",
        "terminationGracePeriodSeconds",
        "automountServiceAccountToken",
    ),
    *("enableServiceLinks", "securityContext", "containers", "imagePullSecrets", "nodeSelector"),
    *("runtimeClassName", "tolerations", "priorityClassName", "hostUsers"),
)
"""Spec fields that we set; apiserver and scheduler added the others."""


def _wait_for_pod(pod: Pod, now: datetime, config: ControllerConfig) -> Decision:
    """Wait for a prune pod; its own deadline ends it, unless no node can schedule it."""
    left = (pod.created + timedelta(seconds=config.timing.unschedulable) - now).total_seconds()
    if left > 0:
        return Decision(requeue_after=left)
    return Decision(delete=(Delete(kinds.POD, pod.name, pod.uid, 0),), requeue_after=5.0)
