"""What a reconcile decided, as a value. Made by the pure decide functions, performed by `apply`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.runtime.workqueue import Key
from crds.kinds import Kind


@dataclass(frozen=True)
class Note:
    """A Kubernetes Event about the object."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True)
class Create:
    """An object to create, with its deterministic name; one that is there and is ours counts as created.

    `events` are told as soon as it is there, whatever becomes of the Decision's other writes.
    """

    kind: Kind
    body: Mapping[str, Any]
    events: tuple[Note, ...] = ()

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.body["metadata"]["name"])


@dataclass(frozen=True)
class Delete:
    """An object to delete, if it still is the one with that uid; `events` are told once it is asked for."""

    kind: Kind
    name: str
    uid: str
    grace_seconds: int | None = None
    events: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Patch:
    """A merge patch of an object, only if it still is as it was read; `events` are told once it is."""

    kind: Kind
    name: str
    body: Mapping[str, Any]
    resource_version: str
    subresource: str | None = "status"
    events: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Decision:
    """Performed in this order: create, delete, before, status, events, after, enqueue.

    `events` are told of what the status says: a write that fails after it is done again, they are not.
    `status` is a merge patch of the object's status, written only where it
    differs; `instead` is another one for where the apiserver finds it invalid;
    `before` and `after` are patches around it (also of the object itself);
    `requeue_after` in seconds.
    """

    create: tuple[Create, ...] = ()
    delete: tuple[Delete, ...] = ()
    before: tuple[Patch, ...] = ()
    status: Mapping[str, Any] | None = None
    instead: Mapping[str, Any] | None = None
    after: tuple[Patch, ...] = ()
    events: tuple[Note, ...] = ()
    enqueue: tuple[Key, ...] = ()
    requeue_after: float | None = None


NOTHING = Decision()


def difference(current: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the merge patch `wanted` that would change `current`; empty where nothing would."""
    patch: dict[str, Any] = {}
    for field, value in wanted.items():
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
