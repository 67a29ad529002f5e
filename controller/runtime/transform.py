"""An object cut down to what decisions need, so that a controller can know many thousands. Pure.

Called by `controller.runtime.cache` with every version that is seen. Equal strings are one: the names of fields and
words such as a phase in thousands of objects, a uid or a time within a Run and its pod.
"""

from collections.abc import Mapping
from sys import intern
from typing import Any

from crds import kinds
from crds.kinds import Kind
from crds.objects import Run

_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "annotations",
    "ownerReferences",
)
_DROPPED_OF_SPEC = {kinds.RUN: frozenset({"input"}), kinds.POD: None}
_OF_KUBECTL = "kubectl.kubernetes.io/"
_ENDED_RUN = ("phase", "project", "deployment", "pod", "claim")
_POD = ("phase", "reason", "message", "conditions", "initContainerStatuses", "containerStatuses", "startTime")
_CONTAINER = ("name", "state", "image", "started")
_POD_CONDITIONS = ("PodScheduled", "Ready", "DisruptionTarget")
_CONDITION = ("type", "status", "reason", "message", "lastTransitionTime")
_STATES = ("waiting", "running", "terminated")


def slim(kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]:
    """An object without managed fields, inputs, outputs and the specs of pods."""
    metadata = {key: obj["metadata"][key] for key in _METADATA if key in obj["metadata"]}
    annotations = metadata.pop("annotations", None) or {}
    if kept := {key: value for key, value in annotations.items() if not key.startswith(_OF_KUBECTL)}:
        metadata["annotations"] = kept
    dropped = _DROPPED_OF_SPEC.get(kind, frozenset())
    spec = obj.get("spec") or {}
    status = dict(obj.get("status") or {})
    if kind == kinds.RUN:
        status = _of_run(obj, status)
    elif kind == kinds.POD:
        status = _of_pod(status)
    small: dict[str, Any] = {"metadata": metadata, "status": status}
    if dropped is not None:
        small["spec"] = {key: value for key, value in spec.items() if key not in dropped}
    elif "activeDeadlineSeconds" in spec:
        small["spec"] = {"activeDeadlineSeconds": spec["activeDeadlineSeconds"]}
    return _shared(small) if kind in (kinds.RUN, kinds.POD) else small


def _of_run(obj: Mapping[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    if Run(obj).ended:
        reported: dict[str, Any] = {"result": {}} if "result" in status else {}
        return _only(_ENDED_RUN, status) | reported
    if "result" in status:
        status["result"] = {key: value for key, value in status["result"].items() if key != "output"}
    return status


def _of_pod(status: Mapping[str, Any]) -> dict[str, Any]:
    small = _only(_POD, status)
    if "conditions" in small:
        found = small["conditions"] or ()
        small["conditions"] = [_only(_CONDITION, one) for one in found if one.get("type") in _POD_CONDITIONS]
    for containers in ("initContainerStatuses", "containerStatuses"):
        if containers in small:
            small[containers] = [_container(one) for one in small[containers] or ()]
    return small


def _container(status: Mapping[str, Any]) -> dict[str, Any]:
    small = _only(_CONTAINER, status)
    state = small.get("state") or {}
    small["state"] = {
        name: {key: value for key, value in (state[name] or {}).items() if key != "containerID"}
        for name in _STATES
        if name in state
    }
    return small


def _only(names: tuple[str, ...], found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in names if name in found}


def _shared(value: Any) -> Any:
    if isinstance(value, dict):
        return {intern(key): _shared(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_shared(one) for one in value]
    return intern(value) if type(value) is str else value
