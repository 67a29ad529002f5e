"""One look at one Deployment: observe, decide, apply. Called by `controller.reconciler`."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime

from controller import triggers
from controller.answers import Answers
from controller.apply import Actor
from controller.config import Config
from controller.deployment.decide import Observed, decide
from controller.deployment.heard import as_ended
from controller.deployment.queue import waits
from crds import kinds, names
from crds.objects import Deployment, Pod, Project


@dataclass(frozen=True)
class DeploymentReconciler:
    """The reconcile of the kind Deployment."""

    actor: Actor
    config: Config
    answers: Answers = field(default_factory=Answers)
    begin: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def reconcile(self, name: str) -> None:
        """Brings one build a step further. Raises what the apiserver refuses; then it is done again."""
        raw = await self.actor.kube.get(kinds.DEPLOYMENT, name)
        if raw is None:
            self.actor.queue.forget(triggers.deployment(name))
            return
        self.actor.known.put(kinds.DEPLOYMENT, raw)
        deployment = Deployment(raw)
        if deployment.failed or deployment.built or deployment.status.get("buildPod"):
            await self._look(deployment)
            return
        # One at a time, so that two builds do not take the same last place.
        async with self.begin:
            await self._look(deployment)

    async def _look(self, deployment: Deployment) -> None:
        project = await self.actor.kube.get(kinds.PROJECT, deployment.project)
        selector = (
            f"{names.LABEL_DEPLOYMENT}={deployment.name},{names.LABEL_COMPONENT}={names.COMPONENT_BUILD}"
        )
        listing = await self.actor.kube.list(kinds.POD, selector)
        ours = [pod for pod in map(Pod, listing.items) if deployment.uid in pod.owner_uids]
        pods = [as_ended(pod, self.answers.get(pod.uid)) for pod in ours]
        queue = "" if pods else waits(deployment, self._others(deployment), self.config)
        seen = Observed(deployment, Project(project) if project else None, pods, queue)
        now = datetime.now(UTC)
        decision = decide(seen, now, self.config)
        key = triggers.deployment(deployment.name)
        await self.actor.perform(kinds.DEPLOYMENT, deployment.raw, key, decision)
        phase = (decision.status or {}).get("phase")
        if phase == "Failed" or "image" in (decision.status or {}):
            result = "failed" if phase == "Failed" else "built"
            taken = (now - deployment.created).total_seconds()
            self.actor.metrics.builds.labels(result).observe(taken)
            self._wake()

    def _others(self, deployment: Deployment) -> list[Deployment]:
        known = map(Deployment, self.actor.known.all(kinds.DEPLOYMENT))
        return [other for other in known if other.name != deployment.name]

    def _wake(self) -> None:
        """A place is free: the Deployments that wait for one are looked at."""
        for raw in self.actor.known.all(kinds.DEPLOYMENT):
            other = Deployment(raw)
            if not other.failed and not other.built and not other.status.get("buildPod"):
                self.actor.queue.add(triggers.deployment(other.name))
