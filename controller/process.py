"""Controller process: all namespaces, election, watch and pages. Called by `__main__` and tests."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Coroutine
from typing import Any

from aiohttp import web

from controller.attestation.registry import RegistryProcess
from controller.commit_status.host import StatusHost
from controller.config import ControllerConfig
from controller.deployment import reported_results
from controller.deployment.warm import waiters
from controller.gauges import add_gauges
from controller.git.client import Git
from controller.github.client import GitHub
from controller.leader_election import LeaderElection
from controller.namespace import NamespaceController, SharedServices
from controller.observability.health import HealthReadings, application
from controller.observability.metrics import ControllerMetrics
from controller.project_names import ProjectNames
from controller.runtime import kopf_watch
from http_server.connections import BoundedSite, raise_file_limit
from internal_tls import ports
from internal_tls.certificate import CertificateFiles
from internal_tls.site import TlsSite
from kube.client import KubeClient

KOPF_EXIT_SECONDS = 5.0
MAX_CONNECTIONS = 1024
"""Of the kubelet, Prometheus and build pods, which run untrusted code."""
MAX_JSON_DEPTH = 40_000
"""The apiserver accepts objects nested 10,000 deep; one unreadable object would break every list."""


class ControllerProcess:
    """Controllers of all namespaces; with an `election`, a standby until it leads.

    Two may run in parallel, since every write has a precondition.
    """

    def __init__(
        self, kube: KubeClient, config: ControllerConfig, election: LeaderElection | None = None
    ) -> None:
        self.config = config
        self._election = election
        self.metrics = ControllerMetrics()
        self._active_since: float | None = None
        self.shared = SharedServices(
            self.metrics,
            Git(config),
            GitHub(config.github_url),
            StatusHost(),
            reported_results.ReportedResults(),
            waiters.Waiters(),
            ProjectNames(config.served_namespaces),
            RegistryProcess(),
            RegistryProcess(),
        )
        sys.setrecursionlimit(max(sys.getrecursionlimit(), MAX_JSON_DEPTH))
        # Connections of its own for each team: slow calls of one keep no other waiting.
        self._kubes = {name: kube.at(name).apart() for name in config.served_namespaces[1:]}
        self.namespaces = {
            name: NamespaceController(self._kubes.get(name, kube), config.of_namespace(name), self.shared)
            for name in config.served_namespaces
        }
        self._watched = list(self.namespaces)
        controllers = list(self.namespaces.values())
        add_gauges(
            self.metrics.gauges,
            [controller.cache for controller in controllers],
            [controller.queues for controller in controllers],
            self.readings,
        )

    @property
    def own(self) -> NamespaceController:
        """The controller of the installation's own namespace."""
        return self.namespaces[self.config.namespace]

    def readings(self) -> HealthReadings:
        """Return the state that the liveness probe checks, of the namespace that is worst.

        A namespace that may not be read counts only if no other may: a restart would not help it.
        """
        now = time.monotonic()
        served = [self.namespaces[name] for name in self._readable()]
        never = next((each for each in served if each.resync.last is None), None)
        oldest = never or min(served, key=lambda each: each.resync.last or 0.0)
        last = oldest.resync.last
        return HealthReadings(
            resync_age=None if last is None else now - last,
            resync_problem=oldest.resync.problem,
            oldest_ready=max(
                max(each.queues.main.oldest_ready(), each.queues.sources.oldest_ready()) for each in served
            ),
            missing_watchers=tuple(kopf_watch.missing_watchers(self._watched)) if self.config.kopf else (),
            uptime=0.0 if self._active_since is None else now - self._active_since,
            active=self._is_active(),
        )

    def _readable(self) -> list[str]:
        """Return the namespaces whose lists are not forbidden; all if all are."""
        readable = [name for name, each in self.namespaces.items() if not each.resync.forbidden]
        return readable or list(self.namespaces)

    def _choose_watched(self) -> list[str]:
        self._watched = self._readable()
        return self._watched

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. Re-raises the error of a failed task; restart the process then."""
        stopping = asyncio.create_task(stop.wait())
        try:
            if self._election is None or await _finishes_before(self._election.acquire(), stopping):
                await self._lead(stop, stopping)
        finally:
            stopping.cancel()
            await self.shared.close()
            for kube in self._kubes.values():
                await kube.close()

    async def _lead(self, stop: asyncio.Event, stopping: asyncio.Task[bool]) -> None:
        """Run all loops until `stopping` is done, then free the Lease."""
        self._active_since = time.monotonic()
        authorities = self.config.internal_ca_file
        loops: list[Coroutine[Any, Any, None]] = [
            *([self._election.keep()] if self._election is not None else []),
            *([authorities.keep()] if authorities is not None else []),
            *(loop for controller in self.namespaces.values() for loop in controller.loops()),
        ]
        tasks = [asyncio.create_task(loop) for loop in loops]
        kopf_stop = asyncio.Event()
        handlers = {name: controller.handlers for name, controller in self.namespaces.items()}
        watcher = (
            asyncio.create_task(kopf_watch.watch(handlers, self._choose_watched, kopf_stop, stop))
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
        keys, namespaces = self.config.token_keys, self.namespaces.items()
        results = reported_results.routes(
            self.shared.reported_results,
            keys,
            {name: controller.queues.add for name, controller in namespaces},
            self._is_active,
        )
        kubes = {name: controller.applier.kube for name, controller in namespaces}
        waits = waiters.routes(self.shared.waiters, keys, kubes, self._is_active)
        tls = self.config.pod_tls
        middlewares = [ports.separate(tls.plain, _refuse)]
        app = application(self.readings, self.metrics.registry, [*results, *waits], middlewares)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = BoundedSite(runner, host, self.config.port, raise_file_limit(MAX_CONNECTIONS))
        await site.start()
        if tls.directory is not None:
            files, connect = CertificateFiles(tls.directory), site.connections.make_connection
            await TlsSite(runner, host, tls.port, connect, files, self.metrics.tls).start()
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


def _refuse(refused: ports.PortRefusal) -> web.Response:
    return web.json_response({"error": refused.message}, status=refused.status)
