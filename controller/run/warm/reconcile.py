"""Reconcile of a Project's waiting pods, serial per Project. Called by `controller.runtime.worker`.

A Project without `run.warm` costs nothing: its key is enqueued only while it has such pods.
"""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from controller.attestation.verify import ImageVerifier
from controller.config import ControllerConfig
from controller.pods.secret_check import find_run_problem
from controller.pods.waiting import pod_name
from controller.run import resolve
from controller.run.observe import RunReader
from controller.run.warm.decide import WarmPool, decide, refused
from controller.run.warm.pod import WarmTemplate, template
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.errors import Retry
from crds import kinds, names
from crds.limits import warm_pods
from crds.objects import Pod, Project
from kube import errors

SUFFIX_BYTES = 5


@dataclass(frozen=True)
class WarmReconciler:
    """Reconciler of the pods of Projects that wait for runs."""

    applier: Applier
    config: ControllerConfig
    verifier: ImageVerifier | None = None

    async def reconcile(self, name: str) -> None:
        """Start and delete waiting pods of a Project. Raises `kube.errors`; the worker then retries."""
        key = event_map.warm(name)
        raw = await self.applier.get_own_project(name, key)
        project = Project(raw) if raw is not None else None
        if raw is None or project is None or project.deleting:
            # Its pods go with it: they belong to it.
            self.applier.queues.remove(key)
            return
        is_hidden = self.applier.is_hidden(kinds.PROJECT, name)
        size = 0 if is_hidden else warm_pods(project, self.config.plans, self.config.limits_of(project))
        # Linearizable: with a stale list, each controller that restarts would start as many again.
        selector = f"{names.LABEL_PROJECT}={name},{names.LABEL_COMPONENT}={names.COMPONENT_RUN}"
        failure = project.status.get("warm")
        selector += f",{names.LABEL_WARM}" if failure else f",{names.LABEL_WARM},!{names.LABEL_RUN}"
        listed = [Pod(item) for item in (await self.applier.kube.list(kinds.POD, selector)).items]
        pods = [pod for pod in listed if pod.run is None]
        bound = [pod for pod in listed if pod.run is not None]
        source = await self._template(project) if size else None
        pool = WarmPool(size, source, pods, failure, bound)
        new_names = [pod_name(name, secrets.token_hex(SUFFIX_BYTES)) for _ in range(size)]
        decision = decide(pool, new_names, datetime.now(UTC), self.config)
        try:
            await self.applier.apply(kinds.PROJECT, raw, key, decision)
        except (errors.KubeForbidden, errors.Invalid) as error:
            if not decision.create:
                raise
            later = refused(pool, error.message, datetime.now(UTC))
            await self.applier.apply(kinds.PROJECT, raw, key, later)

    async def _template(self, project: Project) -> WarmTemplate | None:
        """Return what to make waiting pods from; None if a run could not start from it either.

        Raises Retry while the registry is being asked about the image.
        """
        reader = RunReader(self.applier, event_map.warm(project.name))
        active = await reader.deployment(project.active)
        if active is None or not active.built or active.deleting:
            return None
        secret = await reader.env_secret(project.name)
        use = self.config.secret_use
        if await find_run_problem(self.applier.kube, project, secret, use) is not None:
            return None
        if self.verifier is not None and (why := await self.verifier.problem(project, active)) is not None:
            if self.verifier.is_looking(active):
                # Waiting pods stay until the registry has answered.
                raise Retry(why)
            return None
        source = template(project, active, secret, self.config)
        ready = resolve.RunReady(project, active)
        return source if resolve.missing_variable(ready, source.variables) is None else None
