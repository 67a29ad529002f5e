"""Image cleanup for a deleted Project. Pure.

Called by `controller.images.reconcile`. A prune pod without an owner deletes the images, since owned pods
are deleted with the Project; a failed one is retried, three in total, one that a quota refuses for a quarter
of an hour. Images of Projects deleted while no controller ran, or left after that, stay in the registry. The
cleanup delays neither the deletion nor a new Project of the same name: that one waits for the images these
pods name, as for pods of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controller.config import ControllerConfig
from controller.images import pod as prune_pod
from controller.images.decide import MAX_PRUNE_PODS, RETRY_SECONDS
from controller.images.pod import ImageRemoval, succeeded
from controller.runtime.decision import Create, Decision, Delete
from crds import kinds
from crds.objects import Deployment, Pod, Project

MAX_REFUSED_PODS = 5
"""Refusals of a pod by the kube-apiserver, a growing pause apart, after which the images stay."""


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


def decide(
    remaining: RemainingImages | None, pods: Sequence[Pod], now: datetime, config: ControllerConfig
) -> Decision:
    """Return the Decision about a deleted Project; `remaining` if this process saw the Project."""
    prune_pods = [pod for pod in pods if not pod.owner_uids and not pod.deleting]
    if not prune_pods:
        body = _body(remaining, config) if remaining is not None and remaining.removal else None
        return Decision(create=(Create(kinds.POD, body),)) if body else Decision()
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


def _body(remaining: RemainingImages, config: ControllerConfig) -> dict[str, Any]:
    body = prune_pod.build(remaining.project, remaining.removal, 1, config)
    return {**body, "metadata": {**body["metadata"], "ownerReferences": []}}


def _retry_body(pod: Pod, attempt: int) -> dict[str, Any]:
    """Return the same pod with the next name: nothing else of the Project is known."""
    name = pod.name.rpartition("-a")[0] or pod.name
    metadata = {key: pod.metadata[key] for key in ("labels", "annotations") if key in pod.metadata}
    spec = {key: value for key, value in pod.spec.items() if key in _SPEC_FIELDS}
    return {"metadata": {**metadata, "name": f"{name}-a{attempt}", "ownerReferences": []}, "spec": spec}


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
