"""Transform: drops fields before an object is cached, so the cache can hold many thousands. Pure.

Called by `controller.runtime.cache` with every seen version. Equal strings are interned: field names
and values such as a phase in thousands of objects, a uid or a time within a Run and its pod.
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
_DROPPED_SPEC_FIELDS = {kinds.RUN: frozenset({"input", "answers"}), kinds.POD: None}
_KUBECTL_PREFIX = "kubectl.kubernetes.io/"
_ENDED_RUN_FIELDS = ("phase", "project", "deployment", "pod", "claim")
_POD_SPEC_FIELDS = ("activeDeadlineSeconds", "nodeName")
_POD_FIELDS = (
    "phase",
    "reason",
    "message",
    "conditions",
    "initContainerStatuses",
    "containerStatuses",
    "startTime",
)
_CONTAINER_FIELDS = ("name", "state", "image", "started")
_POD_CONDITIONS = ("PodScheduled", "Ready", "DisruptionTarget", "TerminationTarget")
_CONDITION_FIELDS = ("type", "status", "reason", "message", "lastTransitionTime")
_STATES = ("waiting", "running", "terminated")


def transform(kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without managed fields, inputs, answers, outputs and most of the specs of pods."""
    metadata = {key: obj["metadata"][key] for key in _METADATA if key in obj["metadata"]}
    annotations = metadata.pop("annotations", None) or {}
    if kept := {key: value for key, value in annotations.items() if not key.startswith(_KUBECTL_PREFIX)}:
        metadata["annotations"] = kept
    dropped = _DROPPED_SPEC_FIELDS.get(kind, frozenset())
    spec = obj.get("spec") or {}
    status = dict(obj.get("status") or {})
    if kind == kinds.RUN:
        status = _run_status(obj, status)
    elif kind == kinds.POD:
        status = _pod_status(status)
    small: dict[str, Any] = {"metadata": metadata, "status": status}
    if dropped is not None:
        small["spec"] = {key: value for key, value in spec.items() if key not in dropped}
    elif kept_spec := _select(_POD_SPEC_FIELDS, spec):
        small["spec"] = kept_spec
    return _interned(small) if kind in (kinds.RUN, kinds.POD) else small


def _run_status(obj: Mapping[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    if Run(obj).ended:
        reported: dict[str, Any] = {"result": {}} if "result" in status else {}
        return _select(_ENDED_RUN_FIELDS, status) | reported
    if "result" in status:
        status["result"] = {key: value for key, value in status["result"].items() if key != "output"}
    return status


def _pod_status(status: Mapping[str, Any]) -> dict[str, Any]:
    small = _select(_POD_FIELDS, status)
    if "conditions" in small:
        pod_conditions = small["conditions"] or ()
        small["conditions"] = [
            _select(_CONDITION_FIELDS, one) for one in pod_conditions if one.get("type") in _POD_CONDITIONS
        ]
    for containers in ("initContainerStatuses", "containerStatuses"):
        if containers in small:
            small[containers] = [_container_status(one) for one in small[containers] or ()]
    return small


def _container_status(status: Mapping[str, Any]) -> dict[str, Any]:
    small = _select(_CONTAINER_FIELDS, status)
    state = small.get("state") or {}
    small["state"] = {
        name: {key: value for key, value in (state[name] or {}).items() if key != "containerID"}
        for name in _STATES
        if name in state
    }
    return small


def _select(names: tuple[str, ...], source: Mapping[str, Any]) -> dict[str, Any]:
    return {name: source[name] for name in names if name in source}


def _interned(value: Any) -> Any:
    if isinstance(value, dict):
        return {intern(key): _interned(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_interned(one) for one in value]
    return intern(value) if type(value) is str else value
