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
from crds import kinds, names
from crds.kinds import Kind
from crds.objects import Object, Pod, Run

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
        self._stale: set[tuple[str, str]] = set()
        """Plural and name of objects that `get` does not return: the apiserver has another version."""
        self._warm_pods: dict[str | None, dict[str, dict[str, Any]]] = {}
        """Pods that were started before their run, by project, then by name."""
        self._bound_pods: dict[str, dict[str, dict[str, Any]]] = {}
        """Those of them that got a run, by its name, then by their own."""
        self._of_project: dict[tuple[str, str | None], dict[str, dict[str, Any]]] = {}
        """Deployments, Runs and pods by plural and project, then by name."""
        self._runs_of_deployment: dict[str | None, dict[str, dict[str, Any]]] = {}
        self._waiting_builders: dict[str | None, dict[str, dict[str, Any]]] = {}
        """Pods that wait for a build, by project, then by name."""

    def put(self, kind: Kind, obj: Mapping[str, Any]) -> bool:
        """Store a version of an object; return False if this or a newer version is cached.

        The same version replaces one that is marked as stale.
        """
        table = self._objects[kind.plural]
        name = obj["metadata"]["name"]
        before = table.get(name)
        if before is not None:
            newer = resource_version(obj) - resource_version(before)
            if newer < 0 or (newer == 0 and (kind.plural, name) not in self._stale):
                return False
        self._stale.discard((kind.plural, name))
        self._remove_from_indexes(kind, name)
        small = table[name] = transform(kind, obj)
        for index, key in self._indexes(kind, small):
            index.setdefault(key, {})[name] = small
        self._changes[kind.plural] += 1
        return True

    def remove(self, kind: Kind, name: str, uid: str | None = None) -> bool:
        """Evict an object if its uid matches; return False if it is not cached."""
        before = self._objects[kind.plural].get(name)
        if before is None or (uid and before["metadata"].get("uid") != uid):
            return False
        self._remove_from_indexes(kind, name)
        del self._objects[kind.plural][name]
        self._stale.discard((kind.plural, name))
        self._changes[kind.plural] += 1
        if kind == kinds.POD:
            self._deleted_pods[str(before["metadata"].get("uid"))] = before
            while len(self._deleted_pods) > MAX_DELETED_PODS:
                self._deleted_pods.popitem(last=False)
        return True

    def mark_stale(self, kind: Kind, name: str) -> None:
        """Let `get` return None until another version, or this one, arrives; `all` keeps the object.

        For objects that others count or search for: an evicted one would be missed.
        """
        if name in self._objects[kind.plural]:
            self._stale.add((kind.plural, name))

    def _indexes(self, kind: Kind, raw: dict[str, Any]) -> Iterator[tuple[dict[Any, Any], Any]]:
        """Yield each index that has this object, and its key there."""
        if kind == kinds.RUN:
            run = Run(raw)
            yield self._of_project, (kind.plural, run.project)
            yield self._runs_of_deployment, run.deployment
        elif kind == kinds.DEPLOYMENT:
            yield self._of_project, (kind.plural, Object(raw).spec.get("project"))
        elif kind == kinds.POD:
            pod = Pod(raw)
            project = pod.labels.get(names.LABEL_PROJECT)
            yield self._of_project, (kind.plural, project)
            if pod.waits_for_build:
                yield self._waiting_builders, project
            if pod.warm:
                yield self._warm_pods, project
                if pod.run is not None:
                    yield self._bound_pods, pod.run

    def _remove_from_indexes(self, kind: Kind, name: str) -> None:
        before = self._objects[kind.plural].get(name)
        for index, key in self._indexes(kind, before) if before is not None else ():
            del index[key][name]
            if not index[key]:
                del index[key]

    def deleted_pod(self, uid: str) -> dict[str, Any] | None:
        """Return the last seen version of a recently deleted pod, or None."""
        return self._deleted_pods.get(uid)

    def get(self, kind: Kind, name: str) -> dict[str, Any] | None:
        """Return the newest seen version, or None if there is none or it is stale."""
        if (kind.plural, name) in self._stale:
            return None
        return self._objects[kind.plural].get(name)

    def last_seen(self, kind: Kind, name: str) -> dict[str, Any] | None:
        """Return the newest seen version, also if it is stale, or None."""
        return self._objects[kind.plural].get(name)

    def pods_of_run(self, name: str) -> list[dict[str, Any]]:
        """Return the pods of that name and those bound to a Run of that name, unfinished ones first.

        The caller compares owners: an older Run may have had the name.
        """
        named = self._objects[kinds.POD.plural].get(name)
        bound = self._bound_pods.get(name, {})
        return sorted([*([named] if named else ()), *bound.values()], key=lambda pod: Pod(pod).finished)

    def warm_pods(self, project: str | None = None) -> list[dict[str, Any]]:
        """Return the pods of a project, or of all, that were started before their run; some have one now."""
        if project is not None:
            return list(self._warm_pods.get(project, {}).values())
        return [pod for pods in list(self._warm_pods.values()) for pod in list(pods.values())]

    def has_waiting_builders(self, project: str) -> bool:
        """Return whether pods of a project wait for a build."""
        return project in self._waiting_builders

    def all(self, kind: Kind) -> Iterator[dict[str, Any]]:
        """Return a snapshot of all objects of a kind."""
        return iter(list(self._objects[kind.plural].values()))

    def of_project(self, kind: Kind, project: str | None) -> list[dict[str, Any]]:
        """Return the Deployments, Runs or pods of a project, in no order; None: those that name none."""
        return list(self._of_project.get((kind.plural, project), {}).values())

    def runs_of_deployment(self, deployment: str) -> list[dict[str, Any]]:
        """Return the Runs of a Deployment."""
        return list(self._runs_of_deployment.get(deployment, {}).values())

    def changes(self, kind: Kind) -> int:
        """Return the change counter of a kind; equal numbers mean no change."""
        return self._changes[kind.plural]

    def count(self, kind: Kind) -> int:
        """Return the number of cached objects of a kind."""
        return len(self._objects[kind.plural])
