"""The newest version seen of each object that lives, cut down to what decisions need (`controller.runtime.transform`).

Fed by the watch, the resync and the answers to our own writes, in any order;
the greatest resourceVersion stays. It saves calls and is never the last word:
what creates or ends something rests on preconditions, names and write-once
fields at the apiserver.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from controller.runtime.transform import slim
from crds import kinds
from crds.kinds import Kind

MOST_GONE = 500


def version(obj: Mapping[str, Any]) -> int:
    """The resourceVersion as the number it is (comparable within a kind)."""
    return int(obj["metadata"].get("resourceVersion") or 0)


class Known:
    """Objects by kind and name."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, dict[str, Any]]] = {
            kind.plural: {} for kind in (*kinds.OWN, kinds.POD)
        }
        self._gone: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._changes: Counter[str] = Counter()

    def put(self, kind: Kind, obj: Mapping[str, Any]) -> bool:
        """Keeps a version of an object; False where that version or a newer one is here already."""
        table = self._objects[kind.plural]
        before = table.get(obj["metadata"]["name"])
        if before is not None and version(before) >= version(obj):
            return False
        table[obj["metadata"]["name"]] = slim(kind, obj)
        self._changes[kind.plural] += 1
        return True

    def remove(self, kind: Kind, name: str, uid: str | None = None) -> bool:
        """Forgets an object, if it is the one with that uid; False where it is not here."""
        before = self._objects[kind.plural].get(name)
        if before is None or (uid and before["metadata"].get("uid") != uid):
            return False
        del self._objects[kind.plural][name]
        self._changes[kind.plural] += 1
        if kind == kinds.POD:
            self._gone[str(before["metadata"].get("uid"))] = before
            while len(self._gone) > MOST_GONE:
                self._gone.popitem(last=False)
        return True

    def gone_pod(self, uid: str) -> dict[str, Any] | None:
        """The last version seen of a pod that is gone, if it went not long ago."""
        return self._gone.get(uid)

    def get(self, kind: Kind, name: str) -> dict[str, Any] | None:
        """The newest version seen, or None."""
        return self._objects[kind.plural].get(name)

    def all(self, kind: Kind) -> Iterator[dict[str, Any]]:
        """All of a kind, as of now."""
        return iter(list(self._objects[kind.plural].values()))

    def changes(self, kind: Kind) -> int:
        """How often anything of a kind changed: the same number says that nothing did."""
        return self._changes[kind.plural]

    def count(self, kind: Kind) -> int:
        """How many of a kind are known."""
        return len(self._objects[kind.plural])
