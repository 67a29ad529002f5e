"""Environment variables as a project's Secret and as JSON. Pure. Called by the routes of env.

Values are write-only. An annotation of the Secret stores when each variable was last set. A variable without
an entry (set with kubectl) gets the time of the Secret's last change in managedFields.
"""

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from crds import names
from crds.times import format_second

ANNOTATION = f"{names.GROUP}/updatedAt"
MAX_BYTES = 512 * 1024
"""Limit of all names and values of a project: fits into a Secret and into a process environment."""
SecretObject = Mapping[str, Any]


def size(variables: Mapping[str, str]) -> int:
    """Return the bytes of all names and values."""
    return sum(len(name.encode()) + len(value.encode()) for name, value in variables.items())


def stored_sizes(secret: SecretObject) -> dict[str, int]:
    """Return the bytes of the name and the value of each variable in the Secret."""
    data: Mapping[str, str] = secret.get("data") or {}
    return {name: len(name) + len(base64.b64decode(value)) for name, value in data.items()}


def items(secret: SecretObject | None) -> list[dict[str, Any]]:
    """Return the variables sorted by name, with the time each was last set."""
    if secret is None:
        return []
    times, fallback = _times(secret), _last_changed(secret)
    return [
        {"name": name, "updated_at": times.get(name) or fallback} for name in sorted(secret.get("data") or {})
    ]


def owner_references(project: str, project_uid: str) -> list[dict[str, str]]:
    """Return the owner of a project's Secret: it is deleted with the project."""
    return [{"apiVersion": names.API_VERSION, "kind": "Project", "name": project, "uid": project_uid}]


def new_secret(project: str, project_uid: str, variables: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """Return a new Secret for a project, which owns it."""
    return {
        "metadata": {
            "name": names.env_secret(project),
            "labels": _labels(project),
            "annotations": {ANNOTATION: _updated_at_annotation({}, variables, now)},
            "ownerReferences": owner_references(project, project_uid),
        },
        "type": "Opaque",
        "data": {name: _encode(value) for name, value in variables.items()},
    }


def replace_patch(
    secret: SecretObject, project: str, variables: Mapping[str, str], now: datetime
) -> dict[str, Any]:
    """Return the merge patch that sets exactly these variables; an unchanged value keeps its time."""
    current: SecretObject = secret.get("data") or {}
    desired = {name: _encode(value) for name, value in variables.items()}
    times = {name: time for name, time in _times(secret).items() if current.get(name) == desired.get(name)}
    data = {**dict.fromkeys(current.keys() - desired.keys()), **desired}
    return _patch(secret, project, data, _updated_at_annotation(times, variables, now))


def variable_patch(
    secret: SecretObject, project: str, name: str, value: str | None, now: datetime
) -> dict[str, Any]:
    """Return the merge patch that sets one variable, or removes it (None)."""
    times = {other: time for other, time in _times(secret).items() if other != name}
    annotation = _updated_at_annotation(times, [*times, name] if value is not None else times, now)
    return _patch(secret, project, {name: None if value is None else _encode(value)}, annotation)


def _patch(secret: SecretObject, project: str, data: SecretObject, annotation: str) -> dict[str, Any]:
    return {
        "metadata": {
            # Optimistic locking: fail instead of overwriting a concurrent change.
            "resourceVersion": secret["metadata"]["resourceVersion"],
            "labels": _labels(project),
            "annotations": {ANNOTATION: annotation},
        },
        "data": dict(data),
    }


def _labels(project: str) -> dict[str, str]:
    return {
        names.LABEL_PROJECT: project,
        names.LABEL_MANAGED_BY: names.MANAGED_BY,
        names.LABEL_PART_OF: names.MANAGED_BY,
    }


def _encode(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _updated_at_annotation(times: Mapping[str, str], variables: Any, now: datetime) -> str:
    return json.dumps({name: times.get(name, format_second(now)) for name in sorted(variables)})


def _times(secret: SecretObject) -> dict[str, str]:
    text = (secret["metadata"].get("annotations") or {}).get(ANNOTATION) or "{}"
    try:
        times = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(times, dict):
        return {}
    return {str(name): time for name, time in times.items() if isinstance(time, str)}


def _last_changed(secret: SecretObject) -> str:
    metadata = secret["metadata"]
    times = [str(entry["time"]) for entry in metadata.get("managedFields") or () if entry.get("time")]
    return max(times, default=str(metadata.get("creationTimestamp") or ""))
