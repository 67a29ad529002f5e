"""Decisions of reconciles, as values. Returned by the pure decide functions, applied by `apply`. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.runtime.workqueue import ReconcileKey
from crds.kinds import Kind


@dataclass(frozen=True)
class ObjectEvent:
    """Kubernetes Event about the object."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True)
class Create:
    """Object to create, with a deterministic name; an existing one with our owner counts as created.

    `events` are recorded once it exists, even if the Decision's later writes fail.
    """

    kind: Kind
    body: Mapping[str, Any]
    events: tuple[ObjectEvent, ...] = ()

    @property
    def name(self) -> str:
        """Name of the object."""
        return str(self.body["metadata"]["name"])


@dataclass(frozen=True)
class Delete:
    """Object to delete if its uid still matches, and its resourceVersion if one is given.

    `events` are recorded after the delete call.
    """

    kind: Kind
    name: str
    uid: str
    grace_seconds: int | None = None
    events: tuple[ObjectEvent, ...] = ()
    resource_version: str | None = None


@dataclass(frozen=True)
class Patch:
    """Merge patch, applied if the object is unchanged since it was read; `events` are recorded then."""

    kind: Kind
    name: str
    body: Mapping[str, Any]
    resource_version: str
    subresource: str | None = "status"
    events: tuple[ObjectEvent, ...] = ()


@dataclass(frozen=True)
class Decision:
    """Writes in this order: create, delete, before, status, events, after, delete_last, enqueue.

    `events` report the status: a retry of a later write does not repeat them. `status` is a merge
    patch of the object's status, written only if it differs; `fallback_status` replaces it if the
    apiserver rejects it as invalid; `before` and `after` are patches around it (also of the object
    itself); `delete_last` are objects whose deletion the status explains; `requeue_after` in seconds.
    """

    create: tuple[Create, ...] = ()
    delete: tuple[Delete, ...] = ()
    before: tuple[Patch, ...] = ()
    status: Mapping[str, Any] | None = None
    fallback_status: Mapping[str, Any] | None = None
    after: tuple[Patch, ...] = ()
    delete_last: tuple[Delete, ...] = ()
    events: tuple[ObjectEvent, ...] = ()
    enqueue: tuple[ReconcileKey, ...] = ()
    requeue_after: float | None = None


NOTHING = Decision()


def difference(current: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the merge patch `desired` that changes `current`; empty if none does."""
    patch: dict[str, Any] = {}
    for field, value in desired.items():
        if value is None:
            if field in current:
                patch[field] = None
        elif isinstance(value, Mapping) and isinstance(current.get(field), Mapping):
            inner = difference(current[field], value)
            if inner:
                patch[field] = inner
        elif current.get(field) != value:
            patch[field] = value
    return patch
