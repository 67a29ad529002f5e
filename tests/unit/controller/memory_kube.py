"""A Kubernetes client with its objects in memory: resourceVersions, conflicts, errors on request.

For reconcilers whose question is what they read and write; tests/cluster has the kube-apiserver.
"""

import copy
import time
from collections.abc import Mapping
from typing import Any

from controller.observability.metrics import ControllerMetrics
from controller.runtime.apply import Applier
from controller.runtime.cache import ObjectCache
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.queues import Queues
from controller.runtime.recorder import Recorder
from crds.kinds import Kind
from crds.objects import Object
from kube import errors
from kube.client import Listing


class MemoryKube:
    """The calls of `kube.client.KubeClient` that reconcilers use."""

    namespace = "crews"

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.created: list[str] = []
        self.refused: dict[tuple[str, Kind], errors.KubeError] = {}
        """The error of each `get` or `create` of a kind."""
        self._version = 1000

    def put(self, kind: Kind, obj: Object) -> dict[str, Any]:
        """Store a new version of an object; return it."""
        self._version += 1
        stored = copy.deepcopy(obj.raw)
        stored["metadata"]["resourceVersion"] = str(self._version)
        self.objects[kind.plural, obj.name] = stored
        return copy.deepcopy(stored)

    async def get(self, kind: Kind, name: str) -> dict[str, Any] | None:
        self._check("get", kind)
        return copy.deepcopy(self.objects.get((kind.plural, name)))

    async def list(self, kind: Kind, labels: str = "", fields: str = "") -> Listing:
        """Return all objects of a kind; none where `labels` select some."""
        found = [obj for (plural, _), obj in self.objects.items() if plural == kind.plural and not labels]
        return Listing(copy.deepcopy(found), str(self._version))

    async def names(self, kind: Kind, labels: str = "", fields: str = "") -> frozenset[str]:
        return frozenset()

    async def create(self, kind: Kind, body: Mapping[str, Any]) -> dict[str, Any]:
        self._check("create", kind)
        name = body["metadata"]["name"]
        if (kind.plural, name) in self.objects:
            raise errors.AlreadyExists(409, "AlreadyExists", f"{name} exists")
        self.created.append(f"{kind.plural}/{name}")
        made = {"uid": f"uid-{name}", "creationTimestamp": "2026-11-21T12:00:00Z"}
        return self.put(kind, Object({**body, "metadata": {**body["metadata"], **made}}))

    async def patch(
        self, kind: Kind, name: str, body: Mapping[str, Any], subresource: str | None = None
    ) -> dict[str, Any]:
        stored = self.objects[kind.plural, name]
        if body["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            raise errors.KubeConflict(409, "Conflict", "the object has been modified")
        for part in ("spec", "status"):
            _merge(stored.setdefault(part, {}), body.get(part, {}))
        written = ("labels", "ownerReferences")
        stored["metadata"] |= {key: value for key, value in body["metadata"].items() if key in written}
        stored["metadata"].setdefault("annotations", {}).update(body["metadata"].get("annotations", {}))
        return self.put(kind, Object(stored))

    def _check(self, verb: str, kind: Kind) -> None:
        if (verb, kind) in self.refused:
            raise self.refused[verb, kind]

    async def delete(self, kind: Kind, name: str, uid: str | None = None, *_: object, **__: object) -> bool:
        stored = self.objects.get((kind.plural, name))
        if stored is not None and uid not in (None, stored["metadata"]["uid"]):
            raise errors.KubeConflict(409, "Conflict", "the uid in the precondition does not match")
        return self.objects.pop((kind.plural, name), None) is not None


def _merge(stored: dict[str, Any], patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, Mapping) and isinstance(stored.get(key), dict):
            _merge(stored[key], value)
        else:
            stored[key] = value


class ReconcilerTestbed:
    """An Applier over a MemoryKube; the test delivers the events of its watch."""

    def __init__(self) -> None:
        self.kube = MemoryKube()
        self.cache, self.queues, self.metrics = ObjectCache(), Queues(time.monotonic), ControllerMetrics()
        self.handlers = EventHandlers(self.cache, self.queues)
        recorder = Recorder(self.kube, self.metrics)  # type: ignore[arg-type]
        self.applier = Applier(
            self.kube,  # type: ignore[arg-type]
            self.cache,
            self.handlers,
            self.queues,
            recorder,
            self.metrics,
        )

    def show(self, kind: Kind, obj: Object) -> dict[str, Any]:
        """Store an object and deliver its event; return it."""
        stored = self.kube.put(kind, obj)
        self.handlers.on_change(kind, stored)
        return stored

    async def queued(self) -> set[str]:
        """Take the keys that are ready; return them as `plural/name`."""
        found: set[str] = set()
        for queue in (self.queues.main, self.queues.sources, self.queues.reports, self.queues.attestations):
            for _ in range(queue.depth):
                key = await queue.get()
                queue.done(key)
                found.add(f"{key.plural}/{key.name}")
        return found

    def sample(self, name: str, **labels: str) -> float:
        """Return the value of a metric, 0 if it has none."""
        return self.metrics.registry.get_sample_value(name, labels) or 0.0
