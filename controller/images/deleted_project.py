"""What becomes of the images of a Project that is gone. Pure.

Performed by `controller.images.reconcile`. A prune pod that nobody owns removes them, since the Project's own
pods go with it; one that failed is followed by another, three in all. What was deleted while no controller
ran, or is left after three pods, stays in the registry. Nothing here holds up the deletion, nor a Project of
the same name: that one waits for what these pods name, as for pods of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controller.config import Config
from controller.images import pod as prune_pod
from controller.images.decide import ATTEMPTS, PAUSE
from controller.images.pod import Removal, succeeded
from controller.runtime.decision import Create, Decision, Delete
from crds import kinds
from crds.objects import Deployment, Pod, Project


@dataclass(frozen=True)
class Remains:
    """A Project as it was last seen, and what there is of it in the registry."""

    project: Project
    removal: Removal


def remains(project: Project, deployments: Iterable[Deployment], config: Config) -> Remains:
    """What would be left of a Project now; only what lies in its own repository."""
    below = f"{config.registry}/{config.namespace}/{project.name}@"
    images = (str(one.image) for one in deployments if one.image and str(one.image).startswith(below))
    keys = (str(entry["key"]) for entry in project.status.get("dependencies") or ())
    return Remains(project, Removal({}, tuple(sorted(set(images))), tuple(sorted(set(keys)))))


def decide(left: Remains | None, pods: Sequence[Pod], now: datetime, config: Config) -> Decision:
    """The Decision about a Project that is not there; `left` where it was seen to go just now."""
    ours = [pod for pod in pods if not pod.owner_uids and not pod.deleting]
    if not ours:
        body = _body(left, config) if left is not None and left.removal else None
        return Decision(create=(Create(kinds.POD, body),)) if body else Decision()
    live = [pod for pod in ours if not pod.finished]
    if live:
        return _wait(live[0], now, config)
    if any(map(succeeded, ours)) or len(ours) >= ATTEMPTS:
        return Decision(delete=tuple(Delete(kinds.POD, pod.name, pod.uid) for pod in ours))
    latest = max(ours, key=lambda pod: (pod.created, pod.name))
    pause = timedelta(seconds=PAUSE * 2.0 ** (len(ours) - 1))
    wait = (latest.created + pause - now).total_seconds()
    if wait > 0:
        return Decision(requeue_after=wait)
    return Decision(create=(Create(kinds.POD, _again(latest, len(ours) + 1)),))


def _body(left: Remains, config: Config) -> dict[str, Any]:
    body = prune_pod.build(left.project, left.removal, 1, config)
    return {**body, "metadata": {**body["metadata"], "ownerReferences": []}}


def _again(pod: Pod, attempt: int) -> dict[str, Any]:
    """The same pod by another name: nothing else is known of the Project any more."""
    name = pod.name.rpartition("-a")[0] or pod.name
    kept = {key: pod.metadata[key] for key in ("labels", "annotations") if key in pod.metadata}
    spec = {key: value for key, value in pod.spec.items() if key in _SPEC}
    return {"metadata": {**kept, "name": f"{name}-a{attempt}", "ownerReferences": []}, "spec": spec}


_SPEC = (
    *(
        "restartPolicy",
        "activeDeadlineSeconds",
        "terminationGracePeriodSeconds",
        "automountServiceAccountToken",
    ),
    *("enableServiceLinks", "securityContext", "containers", "imagePullSecrets", "nodeSelector"),
    *("runtimeClassName", "tolerations"),
)
"""What we said of a pod; the rest was added when it was made and scheduled."""


def _wait(pod: Pod, now: datetime, config: Config) -> Decision:
    """Its own deadline ends it, unless no node has room for it."""
    left = (pod.created + timedelta(seconds=config.timing.unschedulable) - now).total_seconds()
    if left > 0:
        return Decision(requeue_after=left)
    return Decision(delete=(Delete(kinds.POD, pod.name, pod.uid, 0),), requeue_after=5.0)
