"""One look at one Deployment: observe, decide, apply. Called by `controller.runtime.worker`."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from controller.config import Config
from controller.deployment import queue
from controller.deployment.build_admission import BUILDS, Begin
from controller.deployment.deadlines import STOP_GRACE
from controller.deployment.decide import WAITS_AGAIN, Observed, decide
from controller.deployment.pod_as_ended import as_ended
from controller.deployment.pod_rejected import refused
from controller.deployment.reported_results import Answers
from controller.runtime import event_map
from controller.runtime.apply import Actor
from controller.runtime.decision import Decision, Delete
from crds import kinds, names
from crds.objects import Deployment, Pod, Project
from kube import errors

NOT_READY_AGAIN = 0.1


@dataclass(frozen=True)
class DeploymentReconciler:
    """The reconcile of the kind Deployment."""

    actor: Actor
    config: Config
    begin: Begin
    answers: Answers = field(default_factory=Answers)

    async def reconcile(self, name: str) -> None:
        """Brings one build a step further. Raises what the apiserver refuses; then it is done again."""
        key = event_map.deployment(name)
        if self.begin.stays(name):
            self.actor.queue.add(key, WAITS_AGAIN)
            return
        raw = await self.actor.kube.get(kinds.DEPLOYMENT, name)
        if raw is None:
            self.actor.queue.forget(key)
            self.actor.known.remove(kinds.DEPLOYMENT, name)
            await self._clear(name)
            self.begin.wake()
            return
        # Not kept silently: what we are the first to see is news to others.
        self.actor.observer.saw(kinds.DEPLOYMENT, raw, key)
        deployment = Deployment(raw)
        if not queue.waiting(deployment):
            await self._go_on(deployment)
        elif not self.begin.ready():
            # Who else builds, and who came earlier, is not known yet.
            self.actor.queue.add(key, NOT_READY_AGAIN)
        else:
            await self._before(deployment)

    async def _before(self, deployment: Deployment) -> None:
        project = await self._project(deployment)
        if project is None:
            await self._perform(Observed(deployment, None, ()))
            return
        if self.begin.condemned(project.name) is None:
            # Which images are going is known after the first look at the Project.
            self.actor.queue.add(event_map.deployment(deployment.name), NOT_READY_AGAIN)
            return
        key = self.begin.key(deployment, project)
        if key is not None:
            async with self.begin.removing:
                twin = await self.begin.living_twin(deployment, key)
                if twin is not None:
                    await self._perform(Observed(deployment, project, (), key=key, twin=twin))
                    return
            same = self.begin.earlier_twin(deployment, key)
            if same is not None:
                await self._perform(Observed(deployment, project, (), key=key, same=same))
                return
        waits = self.begin.known_queue(deployment)
        if waits:
            await self._perform(Observed(deployment, project, (), waits, key))
            return
        # One at a time, so that two builds do not take the same last place.
        async with self.begin.lock:
            pods = await self._pods(deployment)
            waits = "" if pods else await self.begin.live_queue(deployment)
            await self._perform(Observed(deployment, project, pods, waits, key))

    async def _go_on(self, deployment: Deployment) -> None:
        over = not queue.building(deployment)
        project, pods = await self._project(deployment), await self._pods(deployment)
        if over or project is None:
            await self._perform(Observed(deployment, project, pods))
        elif self.begin.removed(project.name) is None:
            self.actor.queue.add(event_map.deployment(deployment.name), NOT_READY_AGAIN)
        elif not any(pod.finished for pod in pods):
            await self._perform(self._seen(deployment, project, pods))
        else:
            # It may have found an image in the registry: whether that stays is known under the lock alone.
            async with self.begin.removing:
                await self._perform(self._seen(deployment, project, pods))
        if over:
            self.begin.wake()

    def _seen(self, deployment: Deployment, project: Project, pods: list[Pod]) -> Observed:
        removed = self.begin.removed(project.name) or frozenset()
        return Observed(deployment, project, pods, removed=removed)

    async def _project(self, deployment: Deployment) -> Project | None:
        raw = await self.actor.kube.get(kinds.PROJECT, deployment.project)
        project = Project(raw) if raw else None
        return None if project is None or project.deleting else project

    async def _pods(self, deployment: Deployment) -> list[Pod]:
        """Its build pods; those of an earlier Deployment of this name are stopped."""
        ours = []
        for pod in await self._labelled(deployment.name):
            if deployment.uid in pod.owner_uids:
                ours.append(as_ended(pod, self.answers.get(pod.uid)))
            else:
                await self._stop(pod)
        return ours

    async def _labelled(self, name: str) -> list[Pod]:
        listing = await self.actor.kube.list(kinds.POD, f"{names.LABEL_DEPLOYMENT}={name},{BUILDS}")
        return [Pod(raw) for raw in listing.items]

    async def _clear(self, name: str) -> None:
        """Stops the build pods of a Deployment that is gone; the garbage collector takes its time."""
        for pod in await self._labelled(name):
            await self._stop(pod)

    async def _stop(self, pod: Pod) -> None:
        grace = int(pod.metadata.get("deletionGracePeriodSeconds") or STOP_GRACE + 1)
        if not pod.finished and (not pod.deleting or grace > STOP_GRACE):
            await self.actor.delete(Delete(kinds.POD, pod.name, pod.uid, STOP_GRACE))

    async def _perform(self, seen: Observed) -> None:
        deployment, now = seen.deployment, datetime.now(UTC)
        key = event_map.deployment(deployment.name)
        decision = decide(seen, now, self.config)
        try:
            await self.actor.perform(kinds.DEPLOYMENT, deployment.raw, key, decision)
        except (errors.Forbidden, errors.Invalid) as error:
            if not decision.create or not str(error.details.get("kind", "")).lower().startswith("pod"):
                raise
            decision = refused(seen, error.message, isinstance(error, errors.Invalid), now, self.config)
            await self.actor.perform(kinds.DEPLOYMENT, deployment.raw, key, decision)
        self._measured(deployment, decision, now)

    def _measured(self, deployment: Deployment, decision: Decision, now: datetime) -> None:
        status = decision.status or {}
        failed = status.get("phase") == "Failed"
        begun = queue.begun(deployment)
        if failed or "image" in status:
            result = "failed" if failed else "built" if begun else "reused"
            self.actor.metrics.builds.labels(result).observe((now - deployment.created).total_seconds())
            reason = (status.get("error") or {}).get("reason", "")
            self.actor.metrics.build_ends.labels(result, reason).inc()
        gives_up = begun and status.get("buildPod", "") is None
        begins = bool(decision.create) and not begun
        if failed or "image" in status or gives_up or begins:
            self.begin.wake()
