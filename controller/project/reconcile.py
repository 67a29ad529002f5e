"""One look at one Project: observe, decide, apply. Called by `controller.runtime.worker`, serial per Project."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from controller.images.reconcile import Retainer
from controller.project import activation, revision
from controller.project.coalesce import Pace
from controller.project.decide import decide
from controller.runtime import event_map
from controller.runtime.apply import Actor
from controller.runtime.decision import Create
from controller.source.observed import Look, Looks
from crds import kinds
from crds.objects import Deployment, Project


@dataclass(frozen=True)
class ProjectReconciler:
    """The reconcile of the kind Project."""

    actor: Actor
    looks: Looks
    retainer: Retainer
    window: float = 0.0
    """Seconds between two builds that commits begin."""
    source_key: Callable[[Deployment, Project], str | None] = lambda *_: None

    async def reconcile(self, name: str) -> None:
        """Brings one Project a step further. Raises what the apiserver refuses; then it is done again."""
        raw = await self.actor.kube.get(kinds.PROJECT, name)
        if raw is None:
            self.actor.known.remove(kinds.PROJECT, name)
            self.looks.forget(name)
            self.actor.queue.forget(event_map.project(name))
            await self.retainer.forget(name)
            return
        # Not kept silently: what we are the first to see is news to others.
        self.actor.observer.saw(kinds.PROJECT, raw, event_map.project(name))
        project = Project(raw)
        if project.deleting:
            return
        listing = await self.actor.kube.list(kinds.DEPLOYMENT, fields=f"spec.project={name}")
        everything = [Deployment(item) for item in listing.items]
        # One without an image is as good as deleted: no rollback leads to it.
        condemned = await self.retainer.look(name)
        deployments = [deployment for deployment in everything if deployment.name not in condemned]
        look = self.looks.get(name)
        decision = decide(project, deployments, look, datetime.now(UTC), self._pace(project, deployments))
        # At once: whatever head is seen from now on comes after this one.
        if look is not None and look.commit and not decision.requeue_after:
            self.looks.took(name, look.commit)
        await self.actor.perform(kinds.PROJECT, raw, event_map.project(name), decision)
        self._ask_for_look(project, deployments, look)
        await self.retainer.retain(project, everything)

    def _pace(self, project: Project, deployments: list[Deployment]) -> Pace:
        keys = {deployment.status.get("sourceKey") for deployment in deployments if deployment.built}

        def has_image(create: Create) -> bool:
            return self.source_key(Deployment(create.body), project) in keys - {None}

        return Pace(self.window, has_image)

    def _ask_for_look(self, project: Project, deployments: list[Deployment], look: Look | None) -> None:
        """A commit that was posted may be a head that the last look was too early for."""
        current = look if look is not None and look.fits(project) and look.problem is None else None
        if project.git is None or project.git.get("suspend"):
            return
        head = revision.judge(project, deployments, current) if current else None
        unlooked = activation.assign(project, deployments, head).unlooked
        if self.looks.demand(project.name, set(unlooked)):
            self.actor.queue.add(event_map.source(project.name))
