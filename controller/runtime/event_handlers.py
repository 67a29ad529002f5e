"""Where changes come in: remembers an object and enqueues what it concerns. Called by watch and resync."""

from collections.abc import Iterable, Mapping
from typing import Any

from controller.runtime import event_map
from controller.runtime.cache import Known
from controller.runtime.queues import Lanes
from controller.runtime.workqueue import Key
from crds.kinds import Kind


class Observer:
    """Feeds Known and the queues."""

    def __init__(self, known: Known, lanes: Lanes) -> None:
        self._known = known
        self._lanes = lanes

    def saw(self, kind: Kind, obj: Mapping[str, Any], by: Key | None = None) -> None:
        """An object as the apiserver showed it; nothing happens if that version was seen already.

        `by` is the key that is being worked at and needs no other look.
        """
        if self._known.put(kind, obj):
            self._enqueue(kind, obj, by)

    def gone(self, kind: Kind, obj: Mapping[str, Any]) -> None:
        """An object that was deleted, or is no longer where it was looked for."""
        metadata = obj["metadata"]
        # Its last version may tell why it went.
        self._known.put(kind, obj)
        self._known.remove(kind, metadata["name"], metadata.get("uid"))
        self._enqueue(kind, obj, gone=True)

    def _enqueue(self, kind: Kind, obj: Mapping[str, Any], by: Key | None = None, gone: bool = False) -> None:
        keys: Iterable[Key] = list(event_map.keys_of(kind, obj, self._known, gone))
        for key in keys:
            if key != by:
                self._lanes.add(key)
