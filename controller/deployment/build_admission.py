"""The moment before a build: an image to take over, a twin to wait for, a place in the queue, or a pod.

Waiting is judged by what is known, without a call; a place is only taken under a
lock and on what the apiserver lists at that moment, so that there are never more
builds than the caps. Called by `controller.deployment.reconcile`.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controller.config import Config
from controller.deployment import queue, reuse, status
from controller.deployment.queue_view import Line, View
from controller.deployment.source_key import recorded_tree, source_key
from controller.runtime import event_map
from controller.runtime.apply import Actor
from crds import conditions, kinds, names
from crds.objects import Deployment, Pod, Project

BUILDING = "status.phase=Building"
LIVE = "status.phase!=Succeeded,status.phase!=Failed"
BUILDS = f"{names.LABEL_COMPONENT}={names.COMPONENT_BUILD}"


@dataclass(frozen=True)
class Begin:
    """What decides on it; `tree_of` tells the git tree of a Deployment from the last look at its source.

    `removing` is held while an image is taken over, and by those who have images removed;
    `condemned` are the Deployments whose images are going, None where that is not known
    yet, and `removed` those images. `ready` is whether all that lives was listed.
    """

    actor: Actor
    config: Config
    line: Line
    tree_of: Callable[[Deployment], str | None] = lambda _: None
    ready: Callable[[], bool] = lambda: True
    condemned: Callable[[str], frozenset[str] | None] = lambda _: frozenset()
    removed: Callable[[str], frozenset[str] | None] = lambda _: frozenset()
    removing: asyncio.Lock = field(default_factory=asyncio.Lock)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def key(self, deployment: Deployment, project: Project) -> str | None:
        """Its source key as of now."""
        tree = self.tree_of(deployment) or recorded_tree(deployment, project)
        return source_key(deployment, project, tree, self.config)

    def stays(self, name: str) -> bool:
        """Whether a Deployment waits in the queue with the right message; nothing is to be done then."""
        raw = self.actor.known.get(kinds.DEPLOYMENT, name)
        deployment = Deployment(raw) if raw else None
        if deployment is None or not queue.stands_in_line(deployment) or not self.ready():
            return False
        if self.actor.known.get(kinds.PROJECT, deployment.project) is None:
            return False
        said = conditions.find(deployment.conditions, conditions.READY) or {}
        if said.get("reason") != status.QUEUED or deployment.generation != said.get("observedGeneration"):
            return False
        key, view = deployment.status.get("sourceKey"), self.line.view()
        if key and (deployment.project, key) in view.built and self._twin(deployment, key):
            return False
        return deployment.name not in view.first and said.get("message") == self._why(deployment)

    def known_queue(self, deployment: Deployment) -> str:
        """Why it must wait as far as is known; empty where it may begin."""
        view = self.line.view()
        # One that never had a look stands in line from now on.
        may = view.first if deployment.name in view.first else self._first(deployment, view, None)
        return "" if deployment.name in may else self._why(deployment)

    async def live_queue(self, deployment: Deployment) -> str:
        """The same on what the apiserver has now; to be called under `lock`."""
        listing = await self.actor.kube.list(kinds.DEPLOYMENT, fields=BUILDING)
        pods = await self.actor.kube.list(kinds.POD, BUILDS, LIVE)
        view = self.line.view()
        by_name = {other.name: other for other in view.deployments}
        taken = queue.busy(map(Deployment, listing.items), map(Pod, pods.items), by_name)
        taken.pop(deployment.name, None)
        return "" if deployment.name in self._first(deployment, view, taken) else self._why(deployment)

    async def living_twin(self, deployment: Deployment, key: str) -> Deployment | None:
        """A built one with that key, as the apiserver has it now; to be called under `removing`."""
        found = self._twin(deployment, key)
        raw = await self.actor.kube.get(kinds.DEPLOYMENT, found.name) if found else None
        if raw is None:
            return None
        return reuse.built_twin(deployment, key, [Deployment(raw)], frozenset())

    def earlier_twin(self, deployment: Deployment, key: str) -> Deployment | None:
        """An earlier one with that key which is being built, or will be."""
        return reuse.building_twin(deployment, key, self.line.view().deployments)

    def wake(self) -> None:
        """A place is free, or the line is another one: those who may begin are looked at."""
        view = self.line.view()
        for name in view.first:
            self.actor.queue.add(event_map.deployment(name))
        for other in view.deployments:
            ready = conditions.find(other.conditions, conditions.READY) or {}
            if ready.get("reason") == status.SAME_SOURCE and queue.waiting(other):
                self.actor.queue.add(event_map.deployment(other.name))

    def _first(self, deployment: Deployment, view: View, taken: Mapping[str, str] | None) -> frozenset[str]:
        if taken is None:
            taken = queue.busy(view.deployments, (), {})
        line = {other.name: other for other in (*view.standing, deployment)}
        return queue.first(line.values(), taken, self.config)

    def _why(self, deployment: Deployment) -> str:
        return queue.why(deployment.project, self.config)

    def _twin(self, deployment: Deployment, key: str) -> Deployment | None:
        going = self.condemned(deployment.project) or frozenset()
        return reuse.built_twin(deployment, key, self.line.view().deployments, going)
