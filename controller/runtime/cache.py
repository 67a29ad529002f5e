"""Cache of the newest seen version of each live object, reduced by `controller.runtime.transform`.

Fed by the watch, the resync and the responses to our own writes, in any order; the greatest
resourceVersion wins. It saves calls and is never authoritative: creating or finishing something
relies on preconditions, names and write-once fields at the apiserver. Called by the event
handlers and the reconcilers.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from controller.runtime.transform import transform
from crds import kinds
from crds.kinds import Kind

MAX_DELETED_PODS = 500


def resource_version(obj: Mapping[str, Any]) -> int:
    """Return the resourceVersion as a number (comparable within a kind)."""
    return int(obj["metadata"].get("resourceVersion") or 0)


class ObjectCache:
    """Cached objects by kind and name."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, dict[str, Any]]] = {
            kind.plural: {} for kind in (*kinds.OWN_KINDS, kinds.POD)
        }
        self._deleted_pods: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._changes: Counter[str] = Counter()

    def put(self, kind: Kind, obj: Mapping[str, Any]) -> bool:
        """Store a version of an object; return False if this or a newer version is cached."""
        table = self._objects[kind.plural]
        before = table.get(obj["metadata"]["name"])
        if before is not None and resource_version(before) >= resource_version(obj):
            return False
        table[obj["metadata"]["name"]] = transform(kind, obj)
        self._changes[kind.plural] += 1
        return True

    def remove(self, kind: Kind, name: str, uid: str | None = None) -> bool:
        """Evict an object if its uid matches; return False if it is not cached."""
        before = self._objects[kind.plural].get(name)
        if before is None or (uid and before["metadata"].get("uid") != uid):
            return False
        del self._objects[kind.plural][name]
        self._changes[kind.plural] += 1
        if kind == kinds.POD:
            self._deleted_pods[str(before["metadata"].get("uid"))] = before
            while len(self._deleted_pods) > MAX_DELETED_PODS:
                self._deleted_pods.popitem(last=False)
        return True

    def deleted_pod(self, uid: str) -> dict[str, Any] | None:
        """Return the last seen version of a recently deleted pod, or None."""
        return self._deleted_pods.get(uid)

    def get(self, kind: Kind, name: str) -> dict[str, Any] | None:
        """Return the newest seen version, or None."""
        return self._objects[kind.plural].get(name)

    def all(self, kind: Kind) -> Iterator[dict[str, Any]]:
        """Return a snapshot of all objects of a kind."""
        return iter(list(self._objects[kind.plural].values()))

    def changes(self, kind: Kind) -> int:
        """Return the change counter of a kind; equal numbers mean no change."""
        return self._changes[kind.plural]

    def count(self, kind: Kind) -> int:
        """Return the number of cached objects of a kind."""
        return len(self._objects[kind.plural])
