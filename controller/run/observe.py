"""Reads the state that a decision about a Run needs, from the cache or the apiserver.

Called by `controller.run.reconcile` and the admission.
"""

from dataclasses import dataclass
from typing import Any

from controller.run import pod_ref, resolve
from controller.run.decide import ObservedRun
from controller.run.outcome import of_pod_reason
from controller.runtime.apply import Applier
from crds import kinds, names
from crds.kinds import Kind
from crds.objects import Deployment, Pod, Project, Run


@dataclass(frozen=True)
class RunReader:
    """Reads with the client and the cache of an Applier."""

    applier: Applier

    async def run(self, name: str, live: bool = False) -> Run | None:
        """Return the Run from the cache, or (`live`, or not cached) from etcd."""
        raw = await self._read(kinds.RUN, name, live)
        return Run(raw) if raw else None

    async def project(self, name: str | None, live: bool = False) -> Project | None:
        """Return the Project of that name."""
        raw = await self._read(kinds.PROJECT, name, live) if name else None
        return Project(raw) if raw else None

    async def deployment(self, name: str | None, live: bool = False) -> Deployment | None:
        """Return the Deployment of that name."""
        raw = await self._read(kinds.DEPLOYMENT, name, live) if name else None
        return Deployment(raw) if raw else None

    async def pod(self, run: Run, live: bool = False) -> Pod | None:
        """Return the Run's pod; None if it was deleted or not created."""
        raw = await self._read(kinds.POD, run.name, live)
        if raw is None:
            return None
        if pod_ref.is_pod_of(run, pod := Pod(raw)):
            return pod
        return None if live else await self.pod(run, live=True)

    async def env_secret(self, project: str) -> dict[str, Any] | None:
        """Return the Secret with the project's variables."""
        return await self.applier.kube.get(kinds.SECRET, names.env_secret(project))

    async def observe(self, run: Run, live: bool = False) -> ObservedRun:
        """Return the state that a decision about `run` needs. `live` bypasses the cache."""
        if run.ended:
            raw = self.applier.cache.get(kinds.POD, run.name)
            pod = Pod(raw) if raw and run.uid in Pod(raw).owner_uids else None
            return ObservedRun(run, None, None, pod)
        deployment = await self.deployment(run.deployment, live)
        project = await self.project(run.project or (deployment.project if deployment else None), live)
        has_pod = pod_ref.pod_uid(run) is not None
        if not has_pod and deployment is None:
            deployment = await self.deployment(resolve.target(run, project), live)
        if run.result is not None:
            # The final status records fields of the pod, unless they are recorded already.
            pod = self._cached_pod(run) or (await self.pod(run) if run.pod is None else None)
            return ObservedRun(run, project, deployment, pod)
        read = has_pod or run.cancel or live
        pod = await self.pod(run, live) if read else self._cached_pod(run)
        if pod is None and has_pod:
            pod = self._deleted_pod(run)
        resolution = None
        if pod is None and not has_pod:
            resolution = await self._resolve(run, project, deployment)
        return ObservedRun(run, project, deployment, pod, resolution)

    async def _resolve(
        self, run: Run, project: Project | None, deployment: Deployment | None
    ) -> resolve.Resolution:
        resolution = resolve.resolve(run, project, deployment)
        if isinstance(resolution, resolve.RunReady) and resolve.needs_variables(resolution):
            variables = resolve.variable_names(await self.env_secret(resolution.project.name))
            return resolve.missing_variable(resolution, variables) or resolution
        return resolution

    def _deleted_pod(self, run: Run) -> Pod | None:
        """Return a deleted pod as failed if its last seen version states why.

        The cluster marks a pod of a lost node as failed and deletes it in the same moment.
        """
        raw = self.applier.cache.deleted_pod(pod_ref.pod_uid(run) or "")
        pod = Pod(raw) if raw else None
        if pod is None or pod.finished:
            return pod
        if of_pod_reason(pod) is None:
            return None
        return Pod({**pod.raw, "status": {**pod.status, "phase": "Failed"}})

    def _cached_pod(self, run: Run) -> Pod | None:
        raw = self.applier.cache.get(kinds.POD, run.name)
        pod = Pod(raw) if raw else None
        return pod if pod is not None and pod_ref.is_pod_of(run, pod) else None

    async def _read(self, kind: Kind, name: str, live: bool) -> dict[str, object] | None:
        cached = None if live else self.applier.cache.get(kind, name)
        if cached is not None:
            return cached
        current = await self.applier.kube.get(kind, name)
        if current is None:
            self.applier.cache.remove(kind, name)
            return None
        self.applier.cache.put(kind, current)
        return current
