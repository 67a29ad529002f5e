"""Pods of a Project that wait for a build: what they are made from, and who gets one.

Called by the reconcilers of Deployments and of the waiting pods.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import structlog

from controller.config import ControllerConfig
from controller.deployment.warm import binding
from controller.deployment.warm.template import BuilderTemplate, template
from controller.deployment.warm.waiters import Waiters
from controller.pods import push_secret
from controller.pods.secret_check import SecretRefused, read_secret
from controller.pods.waiting import secret_version
from controller.runtime import event_map
from controller.runtime.apply import Applier
from crds import kinds, names
from crds.limits import warm_builders
from crds.objects import Deployment, Pod, Project
from crds.secrets.use import build_references, git_reference
from kube import errors

LOG = structlog.get_logger("warm builders")
NEXT_POD_SECONDS = 1.0
"""From a binding to the next waiting pod: its start takes processor time that the build needs."""


@dataclass(frozen=True)
class WarmBuilders:
    """The waiting pods of one namespace's Projects."""

    applier: Applier
    config: ControllerConfig
    waiters: Waiters = field(default_factory=Waiters)

    def size(self, project: Project) -> int:
        """Return how many pods of a Project wait for a build; 0 where pods cannot call the controller."""
        return warm_builders(project, self.config.limits_of(project)) if self.config.report_url else 0

    async def template(self, project: Project) -> BuilderTemplate | None:
        """Return what to make waiting pods from; None if the Project may not use one of its Secrets."""
        references = list(build_references(project, self.config.registry))
        if (git := git_reference(project)) is not None:
            references.append(git)
        versions = {}
        try:
            for reference in references:
                secret = await read_secret(self.applier.kube, project, reference, self.config.secret_use)
                versions[reference.name] = secret_version(secret)
        except SecretRefused:
            return None
        push = push_secret.push_secret(project, self.config)
        if push and push not in versions:
            versions[push] = secret_version(await self.applier.kube.get(kinds.SECRET, push))
        return template(project, versions, self.config)

    async def list_waiting(self, project: str) -> list[Pod]:
        """Return the waiting pods of a Project, read from the apiserver."""
        selector = f"{names.LABEL_PROJECT}={project},{names.LABEL_COMPONENT}={names.COMPONENT_BUILD}"
        selector += f",{names.LABEL_WARM_BUILDER},!{names.LABEL_DEPLOYMENT}"
        return [Pod(raw) for raw in (await self.applier.kube.list(kinds.POD, selector)).items]

    async def take(self, deployment: Deployment, project: Project, body: Mapping[str, Any]) -> Pod | None:
        """Bind a waiting pod to a build, instead of the pod `body`; None if the build starts cold."""
        if not self.size(project) or not binding.suits(deployment, project, body):
            return None
        variables = binding.variables_of(body)
        if sum(map(len, variables.values())) > binding.MAX_VARIABLES_LENGTH:
            return None
        pods, now = await self.list_waiting(project.name), datetime.now(UTC)
        source = await self.template(project) if pods else None
        if source is None:
            return None
        waiting = binding.oldest(pods, source.fingerprint, now, self.config.limits.warm_seconds)
        if waiting is None:
            return None
        self.applier.queues.add(event_map.builders(project.name), NEXT_POD_SECONDS)
        try:
            bound = await self.applier.patch(binding.bind(body, waiting, now))
        except (errors.KubeConflict, errors.KubeNotFound, errors.KubeForbidden, errors.Invalid) as error:
            LOG.info(
                "waiting pod not bound", deployment=deployment.name, pod=waiting.name, problem=str(error)
            )
            self.applier.metrics.warm_builder_binds.labels("lost").inc()
            return None
        self.applier.metrics.warm_builder_binds.labels("bound").inc()
        self.waiters.assign(waiting.uid, variables)
        return Pod(bound)
