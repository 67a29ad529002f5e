"""The moment before a build: an image to take over, a twin to wait for, a place in the queue, or a pod.

Waiting is judged by what is known, without a call; a place is only taken under a
lock and on what the apiserver lists at that moment, so that there are never more
builds than the caps. Called by `controller.deployment.reconcile`.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from controller import triggers
from controller.apply import Actor
from controller.config import Config
from controller.deployment import queue, status, twin
from controller.deployment.source_key import recorded_tree, source_key
from crds import conditions, kinds, names
from crds.objects import Deployment, Pod, Project

BUILDING = "status.phase=Building"
LIVE = "status.phase!=Succeeded,status.phase!=Failed"
BUILDS = f"{names.LABEL_COMPONENT}={names.COMPONENT_BUILD}"
FIRST = 10
"""So many of those who wait are told of their new position at once, the others within `LATER` seconds."""
LATER = 5.0


@dataclass(frozen=True)
class Begin:
    """What decides on it; `tree_of` tells the git tree of a Deployment from the last look at its source.

    `removing` is held while an image is taken over, and by those who have images removed;
    `condemned` are the Deployments whose images are going, None where that is not known
    yet, and `removed` those images. `ready` is whether all that lives was listed.
    """

    actor: Actor
    config: Config
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
        key = deployment.status.get("sourceKey")
        if key and twin.built_twin(deployment, key, self._known(), self._going(deployment)):
            return False
        return said.get("message") == self.known_queue(deployment)

    def known_queue(self, deployment: Deployment) -> str:
        """Why it must wait as far as is known; empty where it may begin."""
        known = self._known()
        pods = map(Pod, self.actor.known.all(kinds.POD))
        taken = queue.busy(known, pods, {other.name: other for other in known})
        return queue.judge(deployment, self._line(known), taken, self.config)

    async def live_queue(self, deployment: Deployment) -> str:
        """The same on what the apiserver has now; to be called under `lock`."""
        listing = await self.actor.kube.list(kinds.DEPLOYMENT, fields=BUILDING)
        pods = await self.actor.kube.list(kinds.POD, BUILDS, LIVE)
        known = self._known()
        by_name = {other.name: other for other in known}
        taken = queue.busy(map(Deployment, listing.items), map(Pod, pods.items), by_name)
        taken.pop(deployment.name, None)
        return queue.judge(deployment, self._line(known), taken, self.config)

    async def living_twin(self, deployment: Deployment, key: str) -> Deployment | None:
        """A built one with that key, as the apiserver has it now; to be called under `removing`."""
        found = twin.built_twin(deployment, key, self._known(), self._going(deployment))
        raw = await self.actor.kube.get(kinds.DEPLOYMENT, found.name) if found else None
        if raw is None:
            return None
        return twin.built_twin(deployment, key, [Deployment(raw)], frozenset())

    def earlier_twin(self, deployment: Deployment, key: str) -> Deployment | None:
        """An earlier one with that key which is being built, or will be."""
        return twin.building_twin(deployment, key, self._known())

    def wake(self) -> None:
        """A place is free, or the queue is another one: those who wait are looked at, the first at once."""
        known = [other for other in self._known() if queue.waiting(other)]
        line = sorted((other for other in known if queue.stands_in_line(other)), key=queue.place)
        for index, other in enumerate(line):
            self.actor.queue.add(triggers.deployment(other.name), 0.0 if index < FIRST else LATER)
        for other in known:
            ready = conditions.find(other.conditions, conditions.READY) or {}
            if ready.get("reason") == status.SAME_SOURCE:
                self.actor.queue.add(triggers.deployment(other.name))

    def _going(self, deployment: Deployment) -> frozenset[str]:
        return self.condemned(deployment.project) or frozenset()

    def _known(self) -> list[Deployment]:
        return [Deployment(raw) for raw in self.actor.known.all(kinds.DEPLOYMENT)]

    def _line(self, known: list[Deployment]) -> list[Deployment]:
        """Those who wait for a place; one whose Project is not there yet holds up nobody."""
        there = {raw["metadata"]["name"] for raw in self.actor.known.all(kinds.PROJECT)}
        return [other for other in known if queue.stands_in_line(other) and other.project in there]
