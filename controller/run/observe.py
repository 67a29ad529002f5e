"""Reads the state that a decision about a Run needs, from the cache or the apiserver.

Called by `controller.run.reconcile` and the admission.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from controller.run import pod_ref, resolve
from controller.run.decide import ObservedRun
from controller.run.outcome import of_pod_reason
from controller.runtime.apply import Applier
from controller.runtime.workqueue import ReconcileKey
from crds import kinds, names
from crds.kinds import Kind
from crds.objects import Deployment, Pod, Project, Run


@dataclass(frozen=True)
class RunReader:
    """Reads with the client and the cache of an Applier. `key` is being reconciled.

    What it reads goes through the event handlers: a version first seen here must enqueue other keys too.
    """

    applier: Applier
    key: ReconcileKey

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
        pod = None if live else self._cached_pod(run)
        if pod is not None:
            return pod
        raw = await self._read(kinds.POD, run.name, live=True)
        if raw is not None and pod_ref.is_pod_of(run, Pod(raw)):
            return Pod(raw)
        return await self._bound_pod(run)

    async def _bound_pod(self, run: Run) -> Pod | None:
        """Return the pod that waited for a run and got this one: it has a name of its own."""
        if run.pod is not None and run.pod["name"] == run.name:
            return None
        selector = f"{names.LABEL_WARM},{names.LABEL_RUN}={run.name}"
        listed = {
            pod.name: pod for pod in map(Pod, (await self.applier.kube.list(kinds.POD, selector)).items)
        }
        for cached in map(Pod, self.applier.cache.pods_of_run(run.name)):
            if cached.warm and cached.name not in listed:
                self.applier.handlers.on_delete(kinds.POD, cached.raw)
        for pod in listed.values():
            self.applier.handlers.on_change(kinds.POD, pod.raw, self.key)
        return next((pod for pod in listed.values() if pod_ref.is_pod_of(run, pod)), None)

    async def env_secret(self, project: str) -> dict[str, Any] | None:
        """Return the Secret with the project's variables."""
        return await self.applier.kube.get(kinds.SECRET, names.env_secret(project))

    async def observe(self, run: Run, live: bool = False) -> ObservedRun:
        """Return the state that a decision about `run` needs. `live` bypasses the cache."""
        if run.ended:
            pods = map(Pod, self.applier.cache.pods_of_run(run.name))
            pod = next((pod for pod in pods if run.uid in pod.owner_uids), None)
            # Only to adopt it: nearly all have an owner. The cache may not show yet that the Project is being
            # deleted and leaves the Run.
            project = None if run.owner_uids else await self.project(run.project, live=True)
            return ObservedRun(run, project, None, pod)
        deployment = await self.deployment(run.deployment, live)
        project = await self.project(run.project or (deployment.project if deployment else None), live)
        has_pod = pod_ref.pod_uid(run) is not None
        if not has_pod and deployment is None:
            deployment = await self.deployment(resolve.target(run, project), live)
        if run.result is not None:
            # The final status records fields of the pod, unless they are recorded already.
            pod = self._cached_pod(run) or (await self.pod(run) if run.pod is None else None)
            return ObservedRun(run, project, deployment, pod, deleted_pod=self._deleted_pod(run))
        read = has_pod or run.cancel or live
        pod = await self.pod(run, live) if read else self._cached_pod(run)
        deleted = self._deleted_pod(run) if pod is None else None
        if deleted is not None:
            pod = _as_failed(deleted)
        resolution = None
        if pod is None and not has_pod:
            resolution = await self._resolve(run, project, deployment)
        return ObservedRun(run, project, deployment, pod, resolution, deleted)

    async def _resolve(
        self, run: Run, project: Project | None, deployment: Deployment | None
    ) -> resolve.Resolution:
        resolution = resolve.resolve(run, project, deployment, datetime.now(UTC))
        if isinstance(resolution, resolve.RunReady) and resolve.needs_variables(resolution):
            variables = resolve.variable_names(await self.env_secret(resolution.project.name))
            return resolve.missing_variable(resolution, variables) or resolution
        return resolution

    def _deleted_pod(self, run: Run) -> Pod | None:
        """Return the last seen version of the Run's deleted pod."""
        raw = self.applier.cache.deleted_pod(pod_ref.pod_uid(run) or "")
        return Pod(raw) if raw is not None else None

    def _cached_pod(self, run: Run) -> Pod | None:
        pods = map(Pod, self.applier.cache.pods_of_run(run.name))
        return next((pod for pod in pods if pod_ref.is_pod_of(run, pod)), None)

    async def _read(self, kind: Kind, name: str, live: bool) -> dict[str, object] | None:
        if self.applier.is_hidden(kind, name):
            return None
        cached = None if live else self.applier.cache.get(kind, name)
        if cached is not None:
            return cached
        current = await self.applier.kube.get(kind, name)
        if current is None:
            self.applier.handlers.on_absent(kind, name)
        else:
            self.applier.handlers.on_change(kind, current, self.key)
        return current


def _as_failed(deleted: Pod) -> Pod | None:
    """Return a deleted pod as failed if its last seen version states why.

    The cluster marks a pod of a lost node as failed and deletes it in the same moment.
    """
    if deleted.finished:
        return deleted
    if of_pod_reason(deleted) is None:
        return None
    return Pod({**deleted.raw, "status": {**deleted.status, "phase": "Failed"}})
