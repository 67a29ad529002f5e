"""The pod that removes images of one Project from the registry (docs/protocol.md). Pure.

What it is to remove is written on it, so that a controller that starts anew knows
which Deployments have no image any more. Called by `controller.images.decide`.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from controller.config import Config
from controller.owner import reference
from controller.pods import env as variables
from controller.pods import push_secret, security
from controller.runtime.event_map import COMPONENT_PRUNE
from crds import names
from crds.objects import Pod, Project

ANNOTATION = f"{names.GROUP}/prune"
VARIABLE = "CREWYARD_PRUNE"
GATE = f"{names.GROUP}/announced"
"""The scheduling gate of a pod that only says what is going to be removed; it never runs."""
DEADLINE = 600
REQUESTS = {"cpu": "50m", "memory": "128Mi"}
LIMITS = {"cpu": "1", "memory": "512Mi", "ephemeral-storage": "1Gi"}


@dataclass(frozen=True)
class Removal:
    """What a prune pod removes: Deployments by name with their uid and image, dependency images by key."""

    deployments: Mapping[str, str]
    images: tuple[str, ...]
    dependencies: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.images or self.dependencies)


def announcement(project: Project, removal: Removal, config: Config) -> dict[str, Any]:
    """A pod that says what is going to be removed, to other controllers too, and never runs."""
    body = build(project, removal, 0, config)
    return {**body, "spec": {**body["spec"], "schedulingGates": [{"name": GATE}]}}


def announces(pod: Pod) -> bool:
    """Whether a pod only announces."""
    return bool(pod.spec.get("schedulingGates"))


def build(project: Project, removal: Removal, attempt: int, config: Config) -> dict[str, Any]:
    """The pod; the same removal and attempt give the same name. Attempts count from 1."""
    told = {"deployments": dict(removal.deployments), "dependencies": list(removal.dependencies)}
    identity = json.dumps([project.uid, told, list(removal.images), attempt], sort_keys=True)
    request = {
        "namespace": config.namespace,
        "project": project.name,
        "registry": push_secret.registry(project, config),
        "images": list(removal.images),
        "dependencies": list(removal.dependencies),
    }
    env: list[dict[str, Any]] = [
        {"name": "CREWYARD_INTERNAL_URL", "value": config.internal_url},
        {"name": "CREWYARD_CONTROLLER_URL", "value": config.controller_url},
        {"name": "CREWYARD_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CREWYARD_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": VARIABLE, "value": variables.told(request)},
        *push_secret.credential(project, config),
    ]
    return {
        "metadata": {
            "name": f"prune-{hashlib.sha256(identity.encode()).hexdigest()[:20]}",
            "labels": {
                names.LABEL_MANAGED_BY: names.MANAGED_BY,
                names.LABEL_PART_OF: names.MANAGED_BY,
                names.LABEL_COMPONENT: COMPONENT_PRUNE,
                names.LABEL_PROJECT: project.name,
            },
            "annotations": {ANNOTATION: json.dumps(told, separators=(",", ":"), sort_keys=True)},
            "ownerReferences": [reference(project)],
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": DEADLINE,
            "terminationGracePeriodSeconds": 5,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": security.restricted_pod(),
            **config.pods.build.spec(),
            "containers": [
                {
                    "name": "prune",
                    "image": config.service_image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": config.way_out.command(["python3", "-m", "build", "prune"]),
                    "env": [*env, *config.way_out.env()],
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "resources": security.resources(None, REQUESTS, LIMITS),
                    "securityContext": security.restricted_container(),
                }
            ],
        },
    }


def removal_of(pod: Pod) -> Removal:
    """What a prune pod was made to remove, but for the images."""
    try:
        told = json.loads(pod.annotations.get(ANNOTATION, ""))
        return Removal(dict(told["deployments"]), (), tuple(told["dependencies"]))
    except (ValueError, KeyError, TypeError):
        return Removal({}, (), ())


def succeeded(pod: Pod) -> bool:
    """Whether a finished prune pod did its work."""
    try:
        told = json.loads(str((pod.terminated("prune") or {}).get("message") or ""))
    except ValueError:
        return False
    return pod.phase == "Succeeded" and isinstance(told, dict) and told.get("outcome") == "pruned"


@dataclass(frozen=True)
class Going:
    """What is gone or going: the images, the Deployments that named them; and how many pods tell of it."""

    deployments: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()
    pods: int = 0


def going(pods: Collection[Pod]) -> Going:
    """What prune pods remove, or removed."""
    return Going(
        frozenset(name for pod in pods for name in removal_of(pod).deployments),
        frozenset(image for pod in pods for image in images_of(pod)),
        len(pods),
    )


def images_of(pod: Pod) -> list[str]:
    """The images in a pod's request."""
    try:
        (container,) = pod.spec["containers"]
        (request,) = (entry["value"] for entry in container["env"] if entry["name"] == VARIABLE)
        return list(json.loads(request)["images"])
    except (ValueError, KeyError, TypeError):
        return []
