"""Performs a Project's retention: looks closer only where there is something to do.

Called by `controller.project.reconcile` after everything else.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog

from controller.config import Config
from controller.images import decide, deleted_project
from controller.images import pod as prune_pod
from controller.images.decide import Kept
from controller.images.deleted_project import Remains
from controller.images.pod import Going
from controller.runtime import event_map
from controller.runtime.apply import Actor
from controller.runtime.decision import Create
from controller.runtime.resync import UNFINISHED_RUN
from crds import kinds, names
from crds.objects import Deployment, Pod, Project, Run
from kube import errors

LOG = structlog.get_logger("retain")


@dataclass(frozen=True)
class Retainer:
    """What removes old Deployments and images. `removing` is also held by those who take an image over."""

    actor: Actor
    config: Config
    removing: asyncio.Lock = field(default_factory=asyncio.Lock)
    going: dict[str, Going] = field(default_factory=dict)
    left: dict[str, Remains] = field(default_factory=dict)
    """By Project: what would be left of it in the registry."""
    burying: set[str] = field(default_factory=set)
    """Projects that are gone and whose images are not yet: a finished pod is soon not known any more."""

    def condemned(self, project: str) -> frozenset[str] | None:
        """The Deployments whose images are going or gone; None before the Project's first look."""
        found = self.going.get(project)
        return found.deployments if found else None

    def images(self, project: str) -> frozenset[str] | None:
        """The images that are going or gone; None before the Project's first look."""
        found = self.going.get(project)
        return found.images if found else None

    async def look(self, name: str) -> frozenset[str]:
        """The same from the pods that are there, which are listed only where there may be any."""
        if name not in self.going or self.going[name] != Going() or self._known_pods(name):
            self.going[name] = prune_pod.going(await self._pods(name))
        return self.going[name].deployments

    async def retain(self, project: Project, deployments: Sequence[Deployment]) -> None:
        """Brings the removal a step further. Raises what the apiserver refuses; then it is done again."""
        now = datetime.now(UTC)
        self.left[project.name] = deleted_project.remains(project, deployments, self.config)
        guess = Kept(project, deployments, self._known_runs(project.name), ())
        # A finished pod is forgotten by the resync; what it removed is still to be taken down.
        begun = self.going.get(project.name, Going()) != Going() or self._known_pods(project.name)
        if not begun and not decide.concerns(guess, now):
            return
        async with self.removing:
            raw = await self.actor.kube.get(kinds.PROJECT, project.name)
            if raw is None or Project(raw).deleting:
                return
            listing = await self.actor.kube.list(kinds.DEPLOYMENT, fields=f"spec.project={project.name}")
            runs = await self.actor.kube.list(kinds.RUN, fields=UNFINISHED_RUN)
            needed = frozenset(run.deployment or "" for run in map(Run, runs.items))
            pods = await self._pods(project.name)
            kept = Kept(Project(raw), [Deployment(item) for item in listing.items], needed, pods)
            decision = decide.decide(kept, now, self.config)
            key = event_map.project(project.name)
            await self.actor.perform(kinds.PROJECT, raw, key, decision)
            made = [Pod(child.body) for child in decision.create]
            self.going[project.name] = prune_pod.going([*pods, *made])

    async def forget(self, project: str) -> None:
        """The Project is gone; its images go, too. Raises what the apiserver refuses: do it again."""
        async with self.removing:
            left = self.left.get(project)
            if left is not None or project in self.burying or self._known_pods(project):
                pods = await self._pods(project)
                decision = deleted_project.decide(left, pods, datetime.now(UTC), self.config)
                for child in decision.create:
                    await self._bury(project, child)
                for gone in decision.delete:
                    await self.actor.delete(gone)
                if decision.requeue_after is not None:
                    self.actor.queue.add(event_map.project(project), decision.requeue_after)
                more = decision.create or decision.requeue_after is not None
                (self.burying.add if more else self.burying.discard)(project)
            self.left.pop(project, None)
            self.going.pop(project, None)

    async def _bury(self, project: str, child: Create) -> None:
        """Makes a pod that nobody owns; where none may be made, as in a namespace that goes, images stay."""
        try:
            self.actor.observer.saw(kinds.POD, await self.actor.kube.create(kinds.POD, child.body))
            self.actor.metrics.writes.labels(kinds.POD.plural, "create").inc()
        except errors.AlreadyExists:
            return
        except (errors.Forbidden, errors.Invalid, errors.NotFound) as error:
            LOG.warning("images stay in the registry", project=project, problem=error.message)

    async def _pods(self, project: str) -> list[Pod]:
        labels = f"{names.LABEL_PROJECT}={project},{names.LABEL_COMPONENT}={event_map.COMPONENT_PRUNE}"
        return [Pod(raw) for raw in (await self.actor.kube.list(kinds.POD, labels)).items]

    def _known_pods(self, project: str) -> bool:
        return any(
            pod.labels.get(names.LABEL_COMPONENT) == event_map.COMPONENT_PRUNE
            and pod.labels.get(names.LABEL_PROJECT) == project
            for pod in map(Pod, self.actor.known.all(kinds.POD))
        )

    def _known_runs(self, project: str) -> frozenset[str]:
        runs = map(Run, self.actor.known.all(kinds.RUN))
        return frozenset(run.deployment or "" for run in runs if not run.ended)
