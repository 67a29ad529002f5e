"""Reading what a decision about a Run needs, from what is known or from the apiserver.

Called by `controller.run.reconcile` and the admission.
"""

from dataclasses import dataclass

from controller.run import pod_ref, resolve
from controller.run.decide import Observed
from controller.run.outcome import of_pod_reason
from controller.runtime.apply import Actor
from crds import kinds, names
from crds.kinds import Kind
from crds.objects import Deployment, Pod, Project, Run


@dataclass(frozen=True)
class Observer:
    """Reads with the connection and the memory of an Actor."""

    actor: Actor

    async def run(self, name: str, live: bool = False) -> Run | None:
        """The Run, as known or (`live`, or where it is not known) as etcd has it."""
        raw = await self._read(kinds.RUN, name, live)
        return Run(raw) if raw else None

    async def project(self, name: str | None, live: bool = False) -> Project | None:
        """The Project of that name."""
        raw = await self._read(kinds.PROJECT, name, live) if name else None
        return Project(raw) if raw else None

    async def deployment(self, name: str | None, live: bool = False) -> Deployment | None:
        """The Deployment of that name."""
        raw = await self._read(kinds.DEPLOYMENT, name, live) if name else None
        return Deployment(raw) if raw else None

    async def pod(self, run: Run, live: bool = False) -> Pod | None:
        """The Run's pod; None where it is gone, or was not made."""
        raw = await self._read(kinds.POD, run.name, live)
        if raw is None:
            return None
        if pod_ref.ours(run, pod := Pod(raw)):
            return pod
        return None if live else await self.pod(run, live=True)

    async def variables(self, project: str) -> frozenset[str]:
        """The names in the project's Secret."""
        secret = await self.actor.kube.get(kinds.SECRET, names.env_secret(project))
        return frozenset((secret or {}).get("data") or {})

    async def whole(self, run: Run, live: bool = False) -> Observed:
        """All that a decision about `run` needs. `live` leaves nothing to memory."""
        if run.ended:
            raw = self.actor.known.get(kinds.POD, run.name)
            pod = Pod(raw) if raw and run.uid in Pod(raw).owner_uids else None
            return Observed(run, None, None, pod)
        deployment = await self.deployment(run.deployment, live)
        project = await self.project(run.project or (deployment.project if deployment else None), live)
        certain = pod_ref.uid(run) is not None
        if not certain and deployment is None:
            deployment = await self.deployment(resolve.target(run, project), live)
        if run.result is not None:
            # What is written of its pod for ever is read from it, unless it was written before.
            pod = self._known_pod(run) or (await self.pod(run) if run.pod is None else None)
            return Observed(run, project, deployment, pod)
        look = certain or run.cancel or live
        pod = await self.pod(run, live) if look else self._known_pod(run)
        if pod is None and certain:
            pod = self._gone_pod(run)
        variables = None
        if pod is None and not certain:
            verdict = resolve.accept(run, project, deployment)
            if isinstance(verdict, resolve.Ready) and resolve.needs_variables(verdict):
                variables = await self.variables(verdict.project.name)
        return Observed(run, project, deployment, pod, variables)

    def _gone_pod(self, run: Run) -> Pod | None:
        """A pod that is gone, as it ended, where it was seen to say why.

        The cluster marks a pod of a lost node as failed and deletes it in the same moment.
        """
        raw = self.actor.known.gone_pod(pod_ref.uid(run) or "")
        pod = Pod(raw) if raw else None
        if pod is None or pod.finished:
            return pod
        if of_pod_reason(pod) is None:
            return None
        return Pod({**pod.raw, "status": {**pod.status, "phase": "Failed"}})

    def _known_pod(self, run: Run) -> Pod | None:
        raw = self.actor.known.get(kinds.POD, run.name)
        pod = Pod(raw) if raw else None
        return pod if pod is not None and pod_ref.ours(run, pod) else None

    async def _read(self, kind: Kind, name: str, live: bool) -> dict[str, object] | None:
        found = None if live else self.actor.known.get(kind, name)
        if found is not None:
            return found
        fresh = await self.actor.kube.get(kind, name)
        if fresh is None:
            self.actor.known.remove(kind, name)
            return None
        self.actor.known.put(kind, fresh)
        return fresh
