"""Reconcile of the images that a Project pulls ahead, serial per Project.

It has a key of its own: nothing of it delays or fails an activation. It lists pods only in the minutes after
an activation, and while pull pods are known. Called by `controller.runtime.worker`.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from controller.attestation.verify import ImageVerifier
from controller.config import ControllerConfig
from controller.pods.secret_check import find_problem
from controller.pull_ahead.decide import ObservedNodes, decide, is_due, is_recent, refused
from controller.runtime import event_map
from controller.runtime.apply import Applier
from crds import kinds, names
from crds.objects import Deployment, Pod, Project
from crds.secrets.use import pull_references
from kube import errors


@dataclass(frozen=True)
class PullAheadReconciler:
    """Reconciler of the nodes and pull pods of Projects."""

    applier: Applier
    config: ControllerConfig
    verifier: ImageVerifier | None = None

    async def reconcile(self, name: str) -> None:
        """Record nodes, create and delete pull pods. Raises `kube.errors`; the worker then retries."""
        key = event_map.pull_ahead(name)
        raw = await self.applier.get(kinds.PROJECT, name, key)
        project = Project(raw) if raw is not None else None
        if raw is None or project is None or project.deleting:
            # The garbage collector deletes the pods: Deployments own them.
            self.applier.queues.remove(key)
            return
        now = datetime.now(UTC)
        run_pods = self._cached_pods(name, names.COMPONENT_RUN) if self.config.pull_ahead else []
        pods: list[Pod] = []
        if is_recent(project, now) or self._cached_pods(name, event_map.COMPONENT_PULL):
            selector = f"{names.LABEL_PROJECT}={name},{names.LABEL_COMPONENT}={event_map.COMPONENT_PULL}"
            pods = [Pod(item) for item in (await self.applier.kube.list(kinds.POD, selector)).items]
        active = await self._active(project) if is_due(project, now, self.config) else None
        decision = decide(ObservedNodes(project, active, run_pods, pods), now, self.config)
        try:
            await self.applier.apply(kinds.PROJECT, raw, key, decision)
        except (errors.KubeForbidden, errors.Invalid) as error:
            if not decision.create:
                raise
            await self.applier.apply(kinds.PROJECT, raw, key, refused(decision, error.message))

    def _cached_pods(self, project: str, component: str) -> list[Pod]:
        pods = map(Pod, self.applier.cache.of_project(kinds.POD, project))
        return [pod for pod in pods if pod.labels.get(names.LABEL_COMPONENT) == component]

    async def _active(self, project: Project) -> Deployment | None:
        """Return the active Deployment; None if no pod may be started from its image, or not yet."""
        key = event_map.pull_ahead(project.name)
        raw = await self.applier.get(kinds.DEPLOYMENT, str(project.active), key)
        active = Deployment(raw) if raw is not None else None
        if active is None or not active.built or active.deleting:
            return None
        kube, use = self.applier.kube, self.config.secret_use
        if await find_problem(kube, project, pull_references(project), use) is not None:
            return None
        if self.verifier is not None and await self.verifier.problem(project, active) is not None:
            return None
        return active
