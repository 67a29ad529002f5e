"""A controller, assembled: memory, queues, reconciles, resync, watch. Called by `__main__` and tests."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Coroutine
from typing import Any

import structlog
from aiohttp import web

from controller.config import Config
from controller.deployment.build_admission import Begin
from controller.deployment.queue_view import Line
from controller.deployment.reconcile import DeploymentReconciler
from controller.deployment.reported_results import Answers, routes
from controller.git.client import Git
from controller.github.client import GitHub
from controller.github.reconcile import GitHubReconciler
from controller.images.reconcile import Retainer
from controller.observability.gauges import add_gauges
from controller.observability.health import Vitals, application
from controller.observability.metrics import Metrics
from controller.project.reconcile import ProjectReconciler
from controller.run.admission import AdmissionReconciler
from controller.run.reconcile import RunReconciler
from controller.runtime import event_map, kopf_watch
from controller.runtime.apply import Actor
from controller.runtime.cache import Known
from controller.runtime.event_handlers import Observer
from controller.runtime.queues import Lanes
from controller.runtime.recorder import Recorder
from controller.runtime.resync import Resync
from controller.runtime.worker import Reconciler
from controller.source.observed import Looks
from controller.source.poller import SourceReconciler
from crds import kinds
from kube.client import Kube

LOG = structlog.get_logger("controller")
SOURCE_WORKERS = 128
"""More than `places.MOST`: a key that waits for a worker for a minute would end this process."""
REPORT_WORKERS = 4
KOPF_EXIT = 5.0
JSON_DEPTH = 40_000
"""The apiserver takes objects nested 10,000 deep; one that we could not read would be in every list."""


class Process:
    """One controller for one namespace. Two at once do no harm, since every write has a precondition."""

    def __init__(self, kube: Kube, config: Config) -> None:
        self.config = config
        self.metrics = Metrics()
        self.known = Known()
        self.lanes = Lanes(time.monotonic)
        self.observer = Observer(self.known, self.lanes)
        self.resync = Resync(kube, self.known, self.observer, time.monotonic)
        self.recorder = Recorder(kube, self.metrics)
        self._git = Git(config)
        self._github = GitHub(config.github_url)
        self._began = time.monotonic()
        self.actor = actor = Actor(kube, self.known, self.observer, self.lanes, self.recorder, self.metrics)
        looks = Looks()
        self._answers = Answers()
        retainer = Retainer(actor, config)
        begin = Begin(
            actor,
            config,
            Line(self.known, config),
            looks.tree_of,
            lambda: self.resync.last is not None,
            retainer.condemned,
            retainer.images,
            retainer.removing,
        )
        sys.setrecursionlimit(max(sys.getrecursionlimit(), JSON_DEPTH))
        self._reconciler = Reconciler(
            {
                kinds.RUN.plural: RunReconciler(actor, config).reconcile,
                event_map.ADMISSION: AdmissionReconciler(actor, config).reconcile,
                kinds.DEPLOYMENT.plural: DeploymentReconciler(actor, config, begin, self._answers).reconcile,
                kinds.PROJECT.plural: ProjectReconciler(
                    actor, looks, retainer, config.timing.burst, begin.key
                ).reconcile,
                event_map.GITHUB: GitHubReconciler(actor, config, self._github).reconcile,
                event_map.SOURCE: SourceReconciler(actor, config, self._git, looks).reconcile,
            },
            self.metrics,
        )
        add_gauges(self.metrics.gauges, self.known, self.lanes, self.vitals)

    def vitals(self) -> Vitals:
        """What the probe looks at."""
        now = time.monotonic()
        return Vitals(
            resync_age=None if self.resync.last is None else now - self.resync.last,
            resync_problem=self.resync.problem,
            oldest_ready=max(self.lanes.main.oldest_ready(), self.lanes.sources.oldest_ready()),
            missing_watchers=tuple(kopf_watch.missing_watchers()) if self.config.kopf else (),
            uptime=now - self._began,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set. Raises what a part of it raised: then the process is to be restarted."""
        works: list[Coroutine[Any, Any, None]] = [
            self.resync.run(self.config.timing.resync),
            self.recorder.run(),
            *(self.lanes.main.work(self._reconciler.handle) for _ in range(self.config.workers)),
            *(self.lanes.sources.work(self._reconciler.handle) for _ in range(SOURCE_WORKERS)),
            *(self.lanes.reports.work(self._reconciler.handle) for _ in range(REPORT_WORKERS)),
        ]
        tasks = [asyncio.create_task(work) for work in works]
        kopf_stop = asyncio.Event()
        watching = (
            asyncio.create_task(kopf_watch.watch(self.observer, self.config.namespace, kopf_stop, stop))
            if self.config.kopf
            else None
        )
        stopping = asyncio.create_task(stop.wait())
        try:
            parts = [*tasks, *([watching] if watching else [])]
            done, _ = await asyncio.wait([stopping, *parts], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopping}:
                task.result()
                raise RuntimeError("a part of the controller ended by itself")
        finally:
            kopf_stop.set()
            for task in [*tasks, stopping]:
                task.cancel()
            await asyncio.gather(*tasks, stopping, return_exceptions=True)
            if watching:
                with contextlib.suppress(TimeoutError, Exception):
                    async with asyncio.timeout(KOPF_EXIT):
                        await watching
            await self._git.close()
            await self._github.close()

    async def serve(self, host: str = "0.0.0.0") -> web.AppRunner:
        """Starts the pages for kubelet and Prometheus, and what build pods call; the caller cleans up."""
        config = self.config
        more = routes(self._answers, config.token_key, config.namespace, self.lanes.add)
        app = application(self.vitals, self.metrics.registry, more)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, host, self.config.port).start()
        return runner
