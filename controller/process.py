"""Controller process: cache, queues, workers, resync and watch. Called by `__main__` and tests."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Coroutine
from typing import Any

import structlog
from aiohttp import web

from controller.attestation.reconcile import AttestationReconciler
from controller.attestation.registry import ImageRegistry
from controller.attestation.verify import ImageVerifier
from controller.commit_status.host import StatusHost
from controller.commit_status.reconcile import CommitStatusReconciler
from controller.config import ControllerConfig
from controller.deployment.build_admission import BuildAdmission
from controller.deployment.queue_view import BuildQueueView
from controller.deployment.reconcile import DeploymentReconciler
from controller.deployment.reported_results import ReportedResults, routes
from controller.gauges import add_gauges
from controller.git.client import Git
from controller.github.client import GitHub
from controller.github.reconcile import GitHubReconciler
from controller.images.reconcile import ImageCollector
from controller.leader_election import LeaderElection
from controller.observability.health import HealthReadings, application
from controller.observability.metrics import ControllerMetrics
from controller.project.reconcile import ProjectReconciler
from controller.run.admission import AdmissionReconciler
from controller.run.reconcile import RunReconciler
from controller.run.warm.reconcile import WarmReconciler
from controller.runtime import event_map, kopf_watch
from controller.runtime.apply import Applier
from controller.runtime.cache import ObjectCache
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.queues import Queues
from controller.runtime.recorder import Recorder
from controller.runtime.resync import Resync
from controller.runtime.worker import Worker
from controller.schedule.reconcile import ScheduleReconciler
from controller.source.observed import ObservedSources
from controller.source.poller import SourceReconciler
from crds import kinds
from kube.client import KubeClient

LOG = structlog.get_logger("controller")
SOURCE_WORKERS = 128
"""More than `host_limits.MAX_PARALLEL_POLLS`: /healthz fails when a key waits a minute for a worker."""
REPORT_WORKERS = 4
KOPF_EXIT_SECONDS = 5.0
MAX_JSON_DEPTH = 40_000
"""The apiserver accepts objects nested 10,000 deep; one unreadable object would break every list."""


class ControllerProcess:
    """Controller of one namespace; with an `election`, a standby until it leads.

    Two may run in parallel, since every write has a precondition.
    """

    def __init__(
        self, kube: KubeClient, config: ControllerConfig, election: LeaderElection | None = None
    ) -> None:
        self.config = config
        self._election = election
        self.metrics = ControllerMetrics()
        self.cache = ObjectCache()
        self.queues = Queues(time.monotonic)
        self.handlers = EventHandlers(self.cache, self.queues)
        self.resync = Resync(kube, self.cache, self.handlers, time.monotonic)
        self.recorder = Recorder(kube, self.metrics)
        self._git = Git(config)
        self._github = GitHub(config.github_url)
        self._status_host = StatusHost()
        self._active_since: float | None = None
        self.applier = applier = Applier(
            kube, self.cache, self.handlers, self.queues, self.recorder, self.metrics
        )
        observed_sources = ObservedSources()
        self._reported_results = ReportedResults()
        # Two processes: an image with large layers does not delay the verification of others.
        self._registries = [ImageRegistry(kube, config), ImageRegistry(kube, config)]
        verifier = ImageVerifier(self._registries[0], config)
        image_collector = ImageCollector(applier, config)
        build_admission = BuildAdmission(
            applier,
            config,
            BuildQueueView(self.cache, config),
            observed_sources.tree_of,
            lambda: self.resync.last is not None,
            image_collector.marked_for_deletion,
            image_collector.deleted_images,
            image_collector.lock,
        )
        sys.setrecursionlimit(max(sys.getrecursionlimit(), MAX_JSON_DEPTH))
        self._worker = Worker(
            {
                kinds.RUN.plural: RunReconciler(applier, config).reconcile,
                event_map.ADMISSION: AdmissionReconciler(applier, config, verifier).reconcile,
                kinds.DEPLOYMENT.plural: DeploymentReconciler(
                    applier, config, build_admission, self._reported_results
                ).reconcile,
                kinds.PROJECT.plural: ProjectReconciler(
                    applier,
                    observed_sources,
                    image_collector,
                    config.timing.coalescing_window,
                    build_admission.source_key,
                    config.placements,
                    config.limits,
                    config.plans,
                    config.run_egress,
                ).reconcile,
                event_map.WARM: WarmReconciler(applier, config, verifier).reconcile,
                event_map.SCHEDULES: ScheduleReconciler(
                    applier, config, lambda: self.resync.last is not None
                ).reconcile,
                event_map.GITHUB: GitHubReconciler(applier, config, self._github).reconcile,
                event_map.COMMIT_STATUS: CommitStatusReconciler(applier, config, self._status_host).reconcile,
                event_map.ATTESTATION: AttestationReconciler(applier, config, self._registries[1]).reconcile,
                event_map.SOURCE: SourceReconciler(applier, config, self._git, observed_sources).reconcile,
            },
            self.metrics,
        )
        add_gauges(self.metrics.gauges, self.cache, self.queues, self.readings)

    def readings(self) -> HealthReadings:
        """Return the state that the liveness probe checks."""
        now = time.monotonic()
        return HealthReadings(
            resync_age=None if self.resync.last is None else now - self.resync.last,
            resync_problem=self.resync.problem,
            oldest_ready=max(self.queues.main.oldest_ready(), self.queues.sources.oldest_ready()),
            missing_watchers=tuple(kopf_watch.missing_watchers()) if self.config.kopf else (),
            uptime=0.0 if self._active_since is None else now - self._active_since,
            active=self._is_active(),
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. Re-raises the error of a failed task; restart the process then."""
        stopping = asyncio.create_task(stop.wait())
        try:
            if self._election is None or await _finishes_before(self._election.acquire(), stopping):
                await self._lead(stop, stopping)
        finally:
            stopping.cancel()
            await self._git.close()
            await self._github.close()
            await self._status_host.close()
            for registry in self._registries:
                await registry.close()

    async def _lead(self, stop: asyncio.Event, stopping: asyncio.Task[bool]) -> None:
        """Run all loops until `stopping` is done, then free the Lease."""
        self._active_since = time.monotonic()
        loops: list[Coroutine[Any, Any, None]] = [
            self.resync.run(self.config.timing.resync),
            *([self._election.keep()] if self._election is not None else []),
            self.recorder.run(),
            *(self.queues.main.run_worker(self._worker.handle) for _ in range(self.config.workers)),
            *(self.queues.sources.run_worker(self._worker.handle) for _ in range(SOURCE_WORKERS)),
            *(self.queues.reports.run_worker(self._worker.handle) for _ in range(REPORT_WORKERS)),
            self.queues.attestations.run_worker(self._worker.handle),
        ]
        tasks = [asyncio.create_task(loop) for loop in loops]
        kopf_stop = asyncio.Event()
        watcher = (
            asyncio.create_task(kopf_watch.watch(self.handlers, self.config.namespace, kopf_stop, stop))
            if self.config.kopf
            else None
        )
        try:
            parts = [*tasks, *([watcher] if watcher else [])]
            done, _ = await asyncio.wait([stopping, *parts], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopping}:
                task.result()
                raise RuntimeError("a controller task exited unexpectedly")
        finally:
            kopf_stop.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if watcher:
                with contextlib.suppress(TimeoutError, Exception):
                    async with asyncio.timeout(KOPF_EXIT_SECONDS):
                        await watcher
            if self._election is not None:
                await self._election.release()

    def _is_active(self) -> bool:
        return self._active_since is not None

    async def serve(self, host: str = "0.0.0.0") -> web.AppRunner:
        """Start the HTTP server for kubelet, Prometheus and build pods; the caller cleans up."""
        config = self.config
        build_routes = routes(
            self._reported_results, config.token_keys, config.namespace, self.queues.add, self._is_active
        )
        app = application(self.readings, self.metrics.registry, build_routes)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, host, self.config.port).start()
        return runner


async def _finishes_before(work: Coroutine[Any, Any, None], stopping: asyncio.Task[bool]) -> bool:
    """Await `work`; cancel it and return False if `stopping` is done first."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait([task, stopping], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            return True
        return False
    finally:
        task.cancel()
