"""Event handlers: cache a changed object and enqueue the keys it affects. Called by watch and resync."""

from collections.abc import Iterable, Mapping
from typing import Any

from controller.project_names import UNSHARED, NamespaceProjectNames
from controller.runtime import event_map
from controller.runtime.cache import ObjectCache
from controller.runtime.queues import Queues
from controller.runtime.workqueue import ReconcileKey
from crds import kinds
from crds.kinds import Kind


class EventHandlers:
    """Feeds the object cache, the project names and the queues."""

    def __init__(
        self, cache: ObjectCache, queues: Queues, project_names: NamespaceProjectNames = UNSHARED
    ) -> None:
        self._cache = cache
        self._queues = queues
        self._project_names = project_names
        self.deleted_uids: set[str] = set()
        """Of objects that were deleted since the resync began its list."""

    def on_change(
        self, kind: Kind, obj: Mapping[str, Any], by: ReconcileKey | None = None, listed: bool = False
    ) -> None:
        """Handle a version of an object; ignore a version that is cached already.

        `by` is the key being reconciled; it is not enqueued again. `listed`: a list shows the object, and no
        event.
        """
        before = self._cache.get(kind, obj["metadata"]["name"]) if kind == kinds.PROJECT else None
        if not self._cache.put(kind, obj):
            return
        if kind == kinds.PROJECT:
            self._project_names.see(obj)
        if event_map.is_record(before, obj):
            if (key := event_map.schedules(obj["metadata"]["name"])) != by:
                self._queues.add(key, listed=listed)
        else:
            self._enqueue(kind, obj, by, listed=listed)

    def on_delete(self, kind: Kind, obj: Mapping[str, Any]) -> None:
        """Handle an object that was deleted or left the listed selection."""
        metadata = obj["metadata"]
        self.deleted_uids.add(str(metadata.get("uid")))
        # Its last version may state why it was deleted.
        self._cache.put(kind, obj)
        self._cache.remove(kind, metadata["name"], metadata.get("uid"))
        if kind == kinds.PROJECT:
            self._project_names.forget(metadata["name"], metadata.get("uid"))
        self._enqueue(kind, obj, deleted=True)

    def on_absent(self, kind: Kind, name: str) -> None:
        """Handle that the apiserver has no object of a name; its deletion may not have been seen yet."""
        known = self._cache.last_seen(kind, name)
        if known is not None:
            self.on_delete(kind, known)

    def on_name_change(self, project: str) -> None:
        """Reconcile all of a Project: another namespace may have taken or freed its name."""
        obj = self._cache.get(kinds.PROJECT, project)
        if obj is not None:
            self._enqueue(kinds.PROJECT, obj)

    def _enqueue(
        self,
        kind: Kind,
        obj: Mapping[str, Any],
        by: ReconcileKey | None = None,
        deleted: bool = False,
        listed: bool = False,
    ) -> None:
        keys: Iterable[ReconcileKey] = list(event_map.keys_of(kind, obj, self._cache, deleted))
        for key in keys:
            if key != by:
                self._queues.add(key, listed=listed)
