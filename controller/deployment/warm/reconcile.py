"""Reconcile of the pods of a Project that wait for a build, serial per Project.

Called by `controller.runtime.worker`. A Project without `build.warm` costs nothing: its key is enqueued only
while it has such pods.
"""

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from controller.config import ControllerConfig
from controller.deployment.warm.decide import ENDED_SECONDS, BuilderPool, decide
from controller.deployment.warm.pool import WarmBuilders
from controller.deployment.warm.template import pod_name
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.decision import ObjectEvent
from crds import kinds
from crds.objects import Project
from kube import errors

SUFFIX_BYTES = 5
REFUSED_EVENT = "WarmBuilderRefused"


@dataclass(frozen=True)
class WarmBuilderReconciler:
    """Reconciler of the pods of Projects that wait for builds."""

    applier: Applier
    config: ControllerConfig
    builders: WarmBuilders

    async def reconcile(self, name: str) -> None:
        """Start and delete waiting pods of a Project. Raises `kube.errors`; the worker then retries."""
        key = event_map.builders(name)
        raw = await self.applier.get_own_project(name, key)
        project = Project(raw) if raw is not None else None
        if raw is None or project is None or project.deleting:
            # The garbage collector deletes its pods: it owns them.
            self.applier.queues.remove(key)
            return
        size = 0 if self.applier.is_hidden(kinds.PROJECT, name) else self.builders.size(project)
        pods = await self.builders.list_waiting(name)
        template = await self.builders.template(project) if size else None
        new_names = [pod_name(name, secrets.token_hex(SUFFIX_BYTES)) for _ in range(size)]
        decision = decide(BuilderPool(size, template, pods), new_names, datetime.now(UTC), self.config)
        try:
            await self.applier.apply(kinds.PROJECT, raw, key, decision)
        except (errors.KubeForbidden, errors.Invalid) as error:
            if not decision.create:
                raise
            message = f"The apiserver rejected a pod that waits for a build: {error.message}"
            event = ObjectEvent(REFUSED_EVENT, message, True)
            later = replace(decision, create=(), events=(event,), requeue_after=ENDED_SECONDS)
            await self.applier.apply(kinds.PROJECT, raw, key, later)
