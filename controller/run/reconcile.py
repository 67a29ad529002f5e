"""Reconcile of one Run: observe, decide, apply. Called by `controller.runtime.worker`."""

from dataclasses import dataclass
from datetime import UTC, datetime

from controller.config import ControllerConfig
from controller.pull_ahead.decide import is_new_node
from controller.run.decide import ObservedRun, after_deletion, decide
from controller.run.end_metrics import record_end
from controller.run.ended_pod import seconds_to_deletion
from controller.run.observe import RunReader
from controller.run.requeue import starts_again
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.decision import Decision
from crds import kinds
from crds.objects import Pod
from crds.reasons import TERMINAL_RUN_PHASES


@dataclass(frozen=True)
class RunReconciler:
    """Reconciler of the kind Run."""

    applier: Applier
    config: ControllerConfig

    async def reconcile(self, name: str) -> None:
        """Reconcile one Run. Raises `kube.errors`; the worker then retries."""
        reader = RunReader(self.applier, event_map.run(name))
        run = await reader.run(name)
        if run is None:
            await self._stop_pods(name)
            return
        observed = await reader.observe(run)
        decision = decide(observed, datetime.now(UTC), self.config)
        if (_is_final(decision) and observed.run.result is None) or starts_again(observed.run, observed.pod):
            # The cache may lag: an outcome without a reported result is decided on the current state of etcd.
            current = await reader.run(name, live=True)
            if current is None:
                return
            observed = await reader.observe(current, live=True)
            decision = decide(observed, datetime.now(UTC), self.config)

        self._remember_node(observed)

        def count() -> None:
            if _is_final(decision):
                record_end(self.applier.metrics, observed.run, decision, self.config.traces)

        await self.applier.apply(kinds.RUN, observed.run.raw, event_map.run(name), decision, count)
        if observed.run.ended or _is_final(decision):
            self._delete_pod_later(observed.pod)
        if _is_final(decision):
            self._forget(observed)

    def _delete_pod_later(self, pod: Pod | None) -> None:
        seconds = seconds_to_deletion(pod, datetime.now(UTC), self.config.timing.run_pod_ttl)
        if pod is not None and seconds is not None:
            self.applier.queues.add(event_map.ended_pod(pod), seconds)

    async def _stop_pods(self, name: str) -> None:
        """Delete by force the pods of a deleted Run that do not stop."""
        key, now = event_map.run(name), datetime.now(UTC)
        pods = map(Pod, self.applier.cache.pods_of_run(name))
        stopping = [pod for pod in pods if pod.deleting and not pod.finished]
        if not stopping:
            self.applier.queues.remove(key)
        for pod in stopping:
            decision = after_deletion(pod, now, self.config.timing.node_lost_after)
            await self.applier.apply(kinds.POD, pod.raw, key, decision)

    def _remember_node(self, observed: ObservedRun) -> None:
        """Let the Project record the node of the pod: images are pulled ahead there."""
        project, pod = observed.project, observed.pod
        if not self.config.pull_ahead or project is None or pod is None:
            return
        if is_new_node(project, pod.node):
            self.applier.queues.add(event_map.pull_ahead(project.name))

    def _forget(self, observed: ObservedRun) -> None:
        self.applier.queues.remove(event_map.run(observed.run.name))
        if observed.pod is not None and observed.pod.finished:
            self.applier.cache.remove(kinds.POD, observed.pod.name)


def _is_final(decision: Decision) -> bool:
    return decision.status is not None and decision.status.get("phase") in TERMINAL_RUN_PHASES
