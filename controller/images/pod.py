"""Prune pod: deletes images of one Project from the registry (docs/protocol.md). Pure.

An annotation lists its deletions, so a restarted controller knows which Deployments have no image.
Called by `controller.images.decide`.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from controller.config import ControllerConfig
from controller.owner import reference
from controller.pods import env as variables
from controller.pods import push_secret, security
from controller.runtime.event_map import COMPONENT_PRUNE
from crds import kinds, names
from crds.objects import Pod, Project

ANNOTATION_PRUNE = f"{names.GROUP}/prune"
REQUEST_VARIABLE = "CREWYARD_PRUNE"
ANNOUNCED_SCHEDULING_GATE = f"{names.GROUP}/announced"
"""Scheduling gate of a pod that only announces deletions; it never runs."""
QUEUE_PREFIX = "kueue.x-k8s.io/"
"""Prefix of the labels by which Kueue queues a pod."""
DEADLINE_SECONDS = 600
REQUESTS = {"cpu": "50m", "memory": "128Mi"}
LIMITS = {"cpu": "1", "memory": "512Mi", "ephemeral-storage": "1Gi"}


@dataclass(frozen=True)
class ImageRemoval:
    """Deletions of a prune pod: Deployments (name to uid), their images, dependency images by key."""

    deployments: Mapping[str, str]
    images: tuple[str, ...]
    dependencies: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.images or self.dependencies)


def announcement(project: Project, removal: ImageRemoval, config: ControllerConfig) -> dict[str, Any]:
    """Return a pod that announces deletions, to other controllers too, and never runs."""
    body = build(project, removal, 0, config)
    # It would take a place of the queue.
    labels = {
        key: value for key, value in body["metadata"]["labels"].items() if not key.startswith(QUEUE_PREFIX)
    }
    return {
        "metadata": {**body["metadata"], "labels": labels},
        "spec": {**body["spec"], "schedulingGates": [{"name": ANNOUNCED_SCHEDULING_GATE}]},
    }


def is_announcement(pod: Pod) -> bool:
    """Return whether a pod only announces deletions."""
    # Kueue sets a gate of its own to a prune pod.
    return {"name": ANNOUNCED_SCHEDULING_GATE} in (pod.spec.get("schedulingGates") or ())


def build(project: Project, removal: ImageRemoval, attempt: int, config: ControllerConfig) -> dict[str, Any]:
    """Return the prune pod; equal removals and attempts give equal names. Attempts count from 1."""
    summary = {"deployments": dict(removal.deployments), "dependencies": list(removal.dependencies)}
    identity = json.dumps([project.uid, summary, list(removal.images), attempt], sort_keys=True)
    request = {
        "namespace": config.namespace,
        "project": project.name,
        "registry": push_secret.registry(project, config),
        "images": list(removal.images),
        "dependencies": list(removal.dependencies),
    }
    env: list[dict[str, Any]] = [
        {"name": "CREWYARD_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CREWYARD_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": REQUEST_VARIABLE, "value": variables.json_env(request)},
        *push_secret.credential(project, config),
    ]
    place = config.placements.build
    return {
        "metadata": {
            "name": f"prune-{hashlib.sha256(identity.encode()).hexdigest()[:20]}",
            "labels": {
                **place.labels,
                names.LABEL_MANAGED_BY: names.MANAGED_BY,
                names.LABEL_PART_OF: names.MANAGED_BY,
                names.LABEL_COMPONENT: COMPONENT_PRUNE,
                names.LABEL_PROJECT: project.name,
            },
            "annotations": {
                **place.annotations,
                ANNOTATION_PRUNE: json.dumps(summary, separators=(",", ":"), sort_keys=True),
            },
            "ownerReferences": [reference(kinds.PROJECT, project)],
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": DEADLINE_SECONDS,
            "terminationGracePeriodSeconds": 5,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": security.restricted_pod(),
            **place.spec(),
            "containers": [
                {
                    "name": "prune",
                    "image": config.service_image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": config.egress.command(["python3", "-m", "build", "prune"]),
                    "env": [*env, *config.egress.env()],
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "resources": security.resources(None, REQUESTS, LIMITS),
                    "securityContext": security.restricted_container(),
                }
            ],
        },
    }


def removal_of(pod: Pod) -> ImageRemoval:
    """Return the deletions of a prune pod, without the images."""
    try:
        summary = json.loads(pod.annotations.get(ANNOTATION_PRUNE, ""))
        return ImageRemoval(dict(summary["deployments"]), (), tuple(summary["dependencies"]))
    except (ValueError, KeyError, TypeError):
        return ImageRemoval({}, (), ())


def succeeded(pod: Pod) -> bool:
    """Return whether a finished prune pod succeeded."""
    try:
        result = json.loads(str((pod.terminated("prune") or {}).get("message") or ""))
    except ValueError:
        return False
    return pod.phase == "Succeeded" and isinstance(result, dict) and result.get("outcome") == "pruned"


@dataclass(frozen=True)
class ImageDeletions:
    """Deleted images and images being deleted, their Deployments, and the number of prune pods."""

    deployments: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()
    pods: int = 0


def image_deletions(pods: Collection[Pod]) -> ImageDeletions:
    """Return the deletions of prune pods, finished or not."""
    return ImageDeletions(
        frozenset(name for pod in pods for name in removal_of(pod).deployments),
        frozenset(image for pod in pods for image in images_of(pod)),
        len(pods),
    )


def images_of(pod: Pod) -> list[str]:
    """Return the images in a pod's request."""
    try:
        (container,) = pod.spec["containers"]
        (request,) = (entry["value"] for entry in container["env"] if entry["name"] == REQUEST_VARIABLE)
        return list(json.loads(request)["images"])
    except (ValueError, KeyError, TypeError):
        return []
