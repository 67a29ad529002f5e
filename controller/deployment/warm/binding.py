"""Binding of a waiting pod to a build. Pure. Called by `controller.deployment.warm.pool`.

One write binds: a patch of the pod, only if the pod is unchanged since it was read. A bound pod has the
label, the owner, the step and the deadline of the pod that it replaces, so everything treats it as that one.
"""

import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from controller.deployment.steps import ANNOTATION_STEP
from controller.runtime.decision import Patch
from crds import kinds, names
from crds.objects import Deployment, Pod, Project
from crds.times import format_time, parse_time

FIRST_STEP = "1"
BUILD_VARIABLES = ("CREWYARD_DEPLOYMENT", "CREWYARD_TOKEN", "CREWYARD_BUILD")
MAX_VARIABLES_LENGTH = 100_000
"""The annotations of an object have at most 256 KiB."""


def suits(deployment: Deployment, project: Project, body: Mapping[str, Any]) -> bool:
    """Return whether a waiting pod can replace the pod `body`: the first one, with no other credentials."""
    source = deployment.spec["source"]
    is_own = "archive" in source or (source.get("git") or {}).get("url") == (project.git or {}).get("url")
    return is_own and body["metadata"]["annotations"].get(ANNOTATION_STEP) == FIRST_STEP


def oldest(pods: Iterable[Pod], fingerprint: str, now: datetime, max_age_seconds: float) -> Pod | None:
    """Return the oldest pod that waits and was made from the template; it has most probably imported all."""
    waiting = (pod for pod in pods if _is_waiting(pod, fingerprint, now, max_age_seconds))
    return min(waiting, key=lambda pod: (pod.created, pod.name), default=None)


def _is_waiting(pod: Pod, fingerprint: str, now: datetime, max_age_seconds: float) -> bool:
    if not pod.waits_for_build or pod.deleting or pod.phase != "Running":
        return False
    is_young = (now - pod.created).total_seconds() < max_age_seconds
    running = any("running" in (container.get("state") or {}) for container in pod.containers)
    return running and is_young and pod.labels[names.LABEL_WARM_BUILDER] == fingerprint


def variables_of(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of the pod `body` that a waiting pod lacks; no secret but the build's token."""
    env = body["spec"]["containers"][0]["env"]
    return {entry["name"]: entry["value"] for entry in env if entry["name"] in BUILD_VARIABLES}


def bind(body: Mapping[str, Any], waiting: Pod, now: datetime) -> Patch:
    """Return the patch that makes a waiting pod the one that `body` describes.

    The kubelet counts the pod's deadline from its start, so the time that it waited is added.
    """
    started = waiting.status.get("startTime")
    waited = (now - (parse_time(str(started)) if started else waiting.created)).total_seconds()
    wanted = body["metadata"]
    metadata = {
        "uid": waiting.uid,
        "labels": {names.LABEL_DEPLOYMENT: wanted["labels"][names.LABEL_DEPLOYMENT]},
        "annotations": {
            **wanted["annotations"],
            names.ANNOTATION_BOUND_AT: format_time(now),
            names.ANNOTATION_BUILD: json.dumps(variables_of(body)),
        },
        "ownerReferences": wanted["ownerReferences"],
    }
    seconds = int(body["spec"]["activeDeadlineSeconds"]) + max(0, math.ceil(waited))
    patch = {"metadata": metadata, "spec": {"activeDeadlineSeconds": seconds}}
    return Patch(kinds.POD, waiting.name, patch, waiting.resource_version, subresource=None)


def assigned_variables(pod: Pod) -> dict[str, str] | None:
    """Return the variables of the build that a pod got, or None while it waits."""
    text = pod.annotations.get(names.ANNOTATION_BUILD)
    if text is None or names.LABEL_DEPLOYMENT not in pod.labels:
        return None
    return {str(name): str(value) for name, value in json.loads(text).items() if name in BUILD_VARIABLES}
