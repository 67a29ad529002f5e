"""Environment variables: a project's Secret, and what the API shows of it. Pure. Called by the routes of env.

The values go in and never come out. When a variable was last set is kept in an
annotation of the Secret; one that was set otherwise (with kubectl) is as old as
the Secret's last change that managedFields know of.
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
"""Of all names and values of a project: what a Secret holds, and well below what a process can be given."""
Object = Mapping[str, Any]


def size(variables: Mapping[str, str]) -> int:
    """The bytes of names and values."""
    return sum(len(name.encode()) + len(value.encode()) for name, value in variables.items())


def listed(secret: Object | None) -> list[dict[str, Any]]:
    """The variables by name, with the time each was last set."""
    if secret is None:
        return []
    times, fallback = _times(secret), _changed(secret)
    return [
        {"name": name, "updated_at": times.get(name) or fallback} for name in sorted(secret.get("data") or {})
    ]


def new(project: str, project_uid: str, variables: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """A Secret for a project that has none; it goes with its project."""
    return {
        "metadata": {
            "name": names.env_secret(project),
            "labels": _labels(project),
            "annotations": {ANNOTATION: _stamp({}, variables, now)},
            "ownerReferences": [
                {"apiVersion": names.API_VERSION, "kind": "Project", "name": project, "uid": project_uid}
            ],
        },
        "type": "Opaque",
        "data": {name: _encode(value) for name, value in variables.items()},
    }


def replaced(secret: Object, project: str, variables: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """The merge patch after which exactly these variables are set; a value that stays keeps its time."""
    before: Object = secret.get("data") or {}
    wanted = {name: _encode(value) for name, value in variables.items()}
    times = {name: at for name, at in _times(secret).items() if before.get(name) == wanted.get(name)}
    data = {**dict.fromkeys(before.keys() - wanted.keys()), **wanted}
    return _patch(secret, project, data, _stamp(times, variables, now))


def changed(secret: Object, project: str, name: str, value: str | None, now: datetime) -> dict[str, Any]:
    """The merge patch that sets one variable, or removes it (None)."""
    times = {other: at for other, at in _times(secret).items() if other != name}
    stamp = _stamp(times, [*times, name] if value is not None else times, now)
    return _patch(secret, project, {name: None if value is None else _encode(value)}, stamp)


def _patch(secret: Object, project: str, data: Object, stamp: str) -> dict[str, Any]:
    return {
        "metadata": {
            # What was read is what is changed: somebody else's change in between is not lost.
            "resourceVersion": secret["metadata"]["resourceVersion"],
            "labels": _labels(project),
            "annotations": {ANNOTATION: stamp},
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


def _stamp(times: Mapping[str, str], variables: Any, now: datetime) -> str:
    return json.dumps({name: times.get(name, format_second(now)) for name in sorted(variables)})


def _times(secret: Object) -> dict[str, str]:
    text = (secret["metadata"].get("annotations") or {}).get(ANNOTATION) or "{}"
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): at for name, at in found.items() if isinstance(at, str)}


def _changed(secret: Object) -> str:
    metadata = secret["metadata"]
    times = [str(entry["time"]) for entry in metadata.get("managedFields") or () if entry.get("time")]
    return max(times, default=str(metadata.get("creationTimestamp") or ""))
