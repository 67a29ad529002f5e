"""Controller of one namespace: cache, queues, reconcilers, resync. Called by `controller.process`.

The namespaces of an installation share nothing that can fill up or wait: a quota, a burst of runs or a slow
repository of one does not delay another.
"""

import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from controller.attestation.reconcile import AttestationReconciler
from controller.attestation.registry import ImageRegistry, RegistryProcess
from controller.attestation.verify import ImageVerifier
from controller.commit_status.host import StatusHost
from controller.commit_status.reconcile import CommitStatusReconciler
from controller.config import ControllerConfig
from controller.deployment.build_admission import BuildAdmission
from controller.deployment.queue_view import BuildQueueView
from controller.deployment.reconcile import DeploymentReconciler
from controller.deployment.reported_results import ReportedResults
from controller.deployment.warm.pool import WarmBuilders
from controller.deployment.warm.reconcile import WarmBuilderReconciler
from controller.deployment.warm.waiters import Waiters
from controller.git.client import Git
from controller.github.client import GitHub
from controller.github.reconcile import GitHubReconciler
from controller.images.reconcile import ImageCollector
from controller.observability.metrics import ControllerMetrics
from controller.project.reconcile import ProjectReconciler
from controller.project_names import NamespaceProjectNames, ProjectNames
from controller.pull_ahead.reconcile import PullAheadReconciler
from controller.run.admission import AdmissionReconciler
from controller.run.ended_pod import EndedPods
from controller.run.reconcile import RunReconciler
from controller.run.warm.reconcile import WarmReconciler
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.cache import ObjectCache
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.queues import Queues
from controller.runtime.recorder import Recorder
from controller.runtime.resync import Resync
from controller.runtime.worker import Reconcile, Worker
from controller.runtime.workqueue import WorkQueue
from controller.schedule.reconcile import ScheduleReconciler
from controller.source.observed import ObservedSources
from controller.source.poller import SourceReconciler
from crds import kinds
from kube.client import KubeClient

SOURCE_WORKERS = 128
"""More than `host_limits.MAX_PARALLEL_POLLS`: /healthz fails when a key waits a minute for a worker."""
REPORT_WORKERS = 4


@dataclass(frozen=True)
class SharedServices:
    """What the controllers of all namespaces share."""

    metrics: ControllerMetrics
    git: Git
    github: GitHub
    status_host: StatusHost
    reported_results: ReportedResults
    waiters: Waiters
    project_names: ProjectNames
    verifications: RegistryProcess
    attestations: RegistryProcess
    """Another process: an image with large layers does not delay the verification of others."""

    async def close(self) -> None:
        """End the child processes and close the connections."""
        for each in (self.git, self.github, self.status_host, self.verifications, self.attestations):
            await each.close()


class NamespaceController:
    """Controller of one namespace."""

    def __init__(self, kube: KubeClient, config: ControllerConfig, shared: SharedServices) -> None:
        self.config = config
        self._project_names = shared.project_names
        names = NamespaceProjectNames(shared.project_names, config.namespace)
        self.cache = ObjectCache()
        self.queues = Queues(time.monotonic)
        self.handlers = EventHandlers(self.cache, self.queues, names)
        shared.project_names.subscribe(config.namespace, self.handlers.on_name_change)
        self.resync = Resync(
            kube,
            self.cache,
            self.handlers,
            time.monotonic,
            lambda: shared.project_names.mark_listed(config.namespace),
        )
        self.recorder = Recorder(kube, shared.metrics)
        self.applier = Applier(
            kube, self.cache, self.handlers, self.queues, self.recorder, shared.metrics, names
        )
        self._shared = shared

    def _reconcilers(self) -> dict[str, Reconcile]:
        """Return the reconcile function of each kind of key."""
        applier, config, kube, shared = self.applier, self.config, self.applier.kube, self._shared
        observed_sources = ObservedSources()
        images = ImageCollector(applier, config)
        verifier = ImageVerifier(ImageRegistry(kube, config, shared.verifications), config)
        builds = BuildAdmission(
            applier,
            config,
            BuildQueueView(self.cache, config),
            observed_sources.tree_of,
            self._has_resynced,
            images.marked_for_deletion,
            images.deleted_images,
            images.lock,
        )
        projects = ProjectReconciler(applier, config, observed_sources, images, builds.source_key)
        builders = WarmBuilders(applier, config, shared.waiters)
        deployments = DeploymentReconciler(applier, config, builds, builders, shared.reported_results)
        attestations = ImageRegistry(kube, config, shared.attestations)
        return {
            kinds.PROJECT.plural: projects.reconcile,
            kinds.DEPLOYMENT.plural: deployments.reconcile,
            kinds.RUN.plural: RunReconciler(applier, config).reconcile,
            event_map.ENDED_POD: EndedPods(applier).reconcile,
            event_map.ADMISSION: AdmissionReconciler(applier, config, verifier).reconcile,
            event_map.WARM: WarmReconciler(applier, config, verifier).reconcile,
            event_map.PULL_AHEAD: PullAheadReconciler(applier, config, verifier).reconcile,
            event_map.BUILDERS: WarmBuilderReconciler(applier, config, builders).reconcile,
            event_map.SCHEDULES: ScheduleReconciler(applier, config, self._has_resynced).reconcile,
            event_map.GITHUB: GitHubReconciler(applier, config, shared.github).reconcile,
            event_map.COMMIT_STATUS: CommitStatusReconciler(applier, config, shared.status_host).reconcile,
            event_map.ATTESTATION: AttestationReconciler(applier, config, attestations).reconcile,
            event_map.SOURCE: SourceReconciler(applier, config, shared.git, observed_sources).reconcile,
        }

    def _has_resynced(self) -> bool:
        return self.resync.last is not None

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """Return the loops of this namespace; none of them ends. Called when this process begins to lead.

        Its reconcilers know since when: until then, another process creates the pods.
        """
        worker = Worker(self._reconcilers(), self._shared.metrics)
        queues = [
            *[self.queues.main] * self.config.workers,
            *[self.queues.sources] * SOURCE_WORKERS,
            *[self.queues.reports] * REPORT_WORKERS,
            self.queues.attestations,
        ]
        return [
            self.resync.run(self.config.timing.resync),
            self.recorder.run(),
            *(self._work(queue, worker) for queue in queues),
        ]

    async def _work(self, queue: WorkQueue, worker: Worker) -> None:
        await self._project_names.wait_complete()
        await queue.run_worker(worker.handle)
