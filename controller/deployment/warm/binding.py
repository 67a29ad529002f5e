"""Binding of a waiting pod to a build. Pure. Called by `controller.deployment.warm.pool`.

One write binds: a patch of the pod, only if the pod is unchanged since it was read. A bound pod has the
label, the owner, the step and the deadline of the pod that it replaces, so everything treats it as that one.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from controller.deployment.steps import ANNOTATION_STEP
from controller.pods import waiting as waiting_pod
from controller.runtime.decision import Patch
from crds import kinds, names
from crds.objects import Deployment, Pod, Project
from crds.times import format_time

CONTAINER = "assemble"
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
    """Return the oldest pod that waits and was made from the template."""
    waiting = (pod for pod in pods if _is_waiting(pod, fingerprint, now, max_age_seconds))
    return next(iter(waiting_pod.oldest_first(waiting)), None)


def _is_waiting(pod: Pod, fingerprint: str, now: datetime, max_age_seconds: float) -> bool:
    if not pod.waits_for_build or not waiting_pod.executes(pod, CONTAINER):
        return False
    is_young = waiting_pod.is_young(pod, now, max_age_seconds)
    return is_young and pod.labels[names.LABEL_WARM_BUILDER] == fingerprint


def variables_of(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of the pod `body` that a waiting pod lacks; no secret but the build's token."""
    env = body["spec"]["containers"][0]["env"]
    return {entry["name"]: entry["value"] for entry in env if entry["name"] in BUILD_VARIABLES}


def bind(body: Mapping[str, Any], waiting: Pod, now: datetime) -> Patch:
    """Return the patch that makes a waiting pod the one that `body` describes."""
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
    seconds = waiting_pod.deadline_seconds(waiting, int(body["spec"]["activeDeadlineSeconds"]), now)
    patch = {"metadata": metadata, "spec": {"activeDeadlineSeconds": seconds}}
    return Patch(kinds.POD, waiting.name, patch, waiting.resource_version, subresource=None)


def assigned_variables(pod: Pod) -> dict[str, str] | None:
    """Return the variables of the build that a pod got, or None while it waits."""
    text = pod.annotations.get(names.ANNOTATION_BUILD)
    if text is None or names.LABEL_DEPLOYMENT not in pod.labels:
        return None
    return {str(name): str(value) for name, value in json.loads(text).items() if name in BUILD_VARIABLES}
