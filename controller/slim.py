"""An object cut down to what decisions need, so that a controller can know many thousands. Pure.

Called by `controller.known` with every version that is seen. What is the same in thousands of objects, the
names of fields and words such as a phase or a project's name, is one string for all of them.
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
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ENDED_RUN = ("phase", "project", "deployment", "pod", "claim")
_POD = ("phase", "reason", "message", "conditions", "initContainerStatuses", "containerStatuses", "startTime")
_CONTAINER = ("name", "state", "image", "started")
_POD_CONDITIONS = ("PodScheduled", "Ready", "DisruptionTarget")
_CONDITION = ("type", "status", "reason", "message", "lastTransitionTime")
_STATES = ("waiting", "running", "terminated")
_LABELS = (
    "app.kubernetes.io/component",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/part-of",
    "crewyard.dev/deployment",
    "crewyard.dev/project",
    "crewyard.dev/run",
    "kubectl.kubernetes.io/default-container",
)
_NAMES = ("apiVersion", "kind", "namespace", "name", "uid", "project", "deployment", "image", "plan")
_WORDS = ("type", "status", "reason", "phase")
_OF_MANY = frozenset((*_LABELS, *_NAMES, *_WORDS))
"""Fields whose values come again in other objects, or in the same one."""


def slim(kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]:
    """An object without managed fields, inputs, outputs and the specs of pods."""
    metadata = {key: obj["metadata"][key] for key in _METADATA if key in obj["metadata"]}
    if _APPLIED in (metadata.get("annotations") or {}):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != _APPLIED}
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


def _shared(value: Any, of_many: bool = False) -> Any:
    if isinstance(value, dict):
        return {_one(key): _shared(one, key in _OF_MANY) for key, one in value.items()}
    if isinstance(value, list):
        return [_shared(one) for one in value]
    return _one(value) if of_many else value


def _one(value: Any) -> Any:
    return intern(value) if type(value) is str else value
