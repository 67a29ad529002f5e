"""Background loops of the API server: projection, recovery, status outbox, build logs, pruning, maintenance.

Started by `api.app` as a cleanup context.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import structlog
from aiohttp import web

from api.config import ApiConfig
from api.internal import status_outbox
from api.maintenance.maintenance_round import MaintenanceRound
from api.maintenance.orphan_blobs import delete_orphans
from api.maintenance.prune_objects import prune_objects, prune_strays
from api.maintenance.record_budgets import BudgetRecorder
from api.maintenance.record_failing_notifications import FailingNotificationsRecorder
from api.maintenance.retention import RetentionPolicy
from api.notifications import dispatcher
from api.projection import projections
from api.projection.kaniko_logs import MAX_PARALLEL_LOGS, KanikoLogs
from api.projection.list_watch import list_and_watch
from api.projection.recover import RECOVER_AFTER, recover_all
from api.projection.restarts import LoopBody, run_forever
from api.projection.resync import resync
from api.projection.stray_runs import StrayRuns
from api.questions import status_delivery
from api.questions.answers import OnAnswer
from api.store.accounting import NEWEST, account_batch, measure_batch
from api.store.errors import StoreUnavailable
from api.store.postponed_runs import PostponedRuns
from api.store.store import Store
from api.telemetry import exporter
from crds.teams.namespaces import place_of
from kube import errors
from kube.client import KubeClient

log = structlog.get_logger()

RECOVER_INTERVAL_SECONDS = 30.0
PRUNE_INTERVAL_SECONDS = 10.0
RESYNC_INTERVAL_SECONDS = 15.0
ROUND_INTERVAL_SECONDS = 10.0
BUSY_INTERVAL_SECONDS = 0.2
"""Pause between two rounds while there is more to do; leaves the store to other writers."""
STORAGE_STATS_INTERVAL_SECONDS = 60.0
ORPHAN_SWEEP_INTERVAL_SECONDS = 6 * 3600.0
IDEMPOTENCY_EXPIRY_INTERVAL_SECONDS = 3600.0
KEY_USES_INTERVAL_SECONDS = 10.0
ACCOUNTING_INTERVAL_SECONDS = 5.0
CANCEL_TIMEOUTS_SECONDS = (5.0, 5.0)
"""Seconds to wait after each cancellation; the termination grace period is 20 s in total."""

WATCHES_PER_NAMESPACE = 5
"""Of the projections, the build logs, and the pods that wait for a run. Each keeps a connection."""
CONNECTIONS_PER_NAMESPACE = WATCHES_PER_NAMESPACE + MAX_PARALLEL_LOGS
"""Kept by watches, and by build logs until their builds end."""


@dataclass
class ProjectionProgress:
    """Progress of the projection, for the readiness probe: time of the last full list by kind.

    Kinds in the namespace of a team are separate, as `runs@team-a`.
    """

    listed_at: dict[str, float] = field(default_factory=dict)
    last_event_at: dict[str, float] = field(default_factory=dict)
    """Time of the last list or watch event by kind (monotonic seconds)."""
    started_at: float = field(default_factory=time.monotonic)
    is_follower: Callable[[], bool] = lambda: False
    """Whether another replica runs the projection."""

    @property
    def ready(self) -> bool:
        """Whether all kinds of the installation's own namespace have been listed once."""
        return self.is_follower() or sum("@" not in kind for kind in self.listed_at) == 3

    def silent_seconds(self, kind: str, now: float) -> float:
        """Return the seconds since the last event of a kind; 0 if another replica watches.

        Of several namespaces, the one that is silent longest counts, unless it could never be read.
        """
        if self.is_follower():
            return 0.0
        times = [time for key, time in self.last_event_at.items() if key.startswith(f"{kind}@")]
        return max(0.0, now - min(self.last_event_at.get(kind, self.started_at), *times, now))


def cleanup_context(
    config: ApiConfig,
    store: Store,
    kube: KubeClient,
    progress: ProjectionProgress | None = None,
    on_failure: Callable[[str], None] = lambda work: None,
    on_answer: OnAnswer = lambda: None,
    on_delivery: dispatcher.OnAttempt = lambda status: None,
    on_export: exporter.OnExport = lambda result, count: None,
) -> Callable[[web.Application], AsyncIterator[None]]:
    """Return a cleanup context for `app.cleanup_ctx` that runs all loops until the application stops.

    Call `on_failure` with the name of each loop that fails and is restarted, `on_answer` for each answer that
    a Run object gives, `on_delivery` for each attempt to deliver a notification, and `on_export` for exports
    of traces.
    """
    projection_progress = progress or ProjectionProgress()
    projection_progress.is_follower = lambda: store.leader.other_leader_seen

    async def lead() -> None:
        logs = {name: KanikoLogs(store, kube.at(name)) for name in config.served_namespaces}
        loops = _leader_loops(config, store, kube, projection_progress, logs, on_answer)
        loops["notifications"] = lambda: dispatcher.deliver_all(store, kube, config, on_delivery)
        loops["traces"] = lambda: exporter.export_all(store, config, on_export)
        tasks = _start(loops, on_failure)
        try:
            await asyncio.wait(tasks)
        finally:
            await cancel_all(tasks)
            for each in logs.values():
                await each.close()

    async def run(_app: web.Application) -> AsyncIterator[None]:
        tasks = _start(
            {**_replica_loops(store, kube), "leading": lambda: store.leader.lead(lead)}, on_failure
        )
        yield
        await cancel_all(tasks)

    return run


def _start(bodies: dict[str, LoopBody], on_failure: Callable[[str], None]) -> list[asyncio.Task[None]]:
    return [
        asyncio.create_task(run_forever(name, body, on_failure), name=name) for name, body in bodies.items()
    ]


def _replica_loops(store: Store, kube: KubeClient) -> dict[str, LoopBody]:
    """Return the loops of every replica: each writes its own claims and its own key uses."""

    return {
        "outbox": lambda: status_outbox.deliver_all(store, kube),
        "questions": lambda: status_delivery.deliver_all(store, kube),
        "uses of keys": partial(_repeat, store.keys.flush_uses, KEY_USES_INTERVAL_SECONDS),
    }


def _leader_loops(
    config: ApiConfig,
    store: Store,
    kube: KubeClient,
    progress: ProjectionProgress,
    logs: Mapping[str, KanikoLogs],
    on_answer: OnAnswer,
) -> dict[str, LoopBody]:
    """Return the loops of the leader; two leaders for a moment do no harm."""
    strays = StrayRuns()
    return {
        **_watch_loops(config, store, kube, progress, logs, on_answer, strays),
        **_store_loops(config, store),
        **_object_loops(config, store, kube, strays),
    }


def _watch_loops(
    config: ApiConfig,
    store: Store,
    kube: KubeClient,
    progress: ProjectionProgress,
    logs: Mapping[str, KanikoLogs],
    on_answer: OnAnswer,
    strays: StrayRuns,
) -> dict[str, LoopBody]:
    """Return the loops that watch the objects of each namespace."""
    loops: dict[str, LoopBody] = {}
    for name in config.served_namespaces:
        client, place, suffix = kube.at(name), place_of(name, config.namespace), _suffix(config, name)
        watched = {
            "projects": projections.projects(store, place),
            "deployments": projections.deployments(store, place),
            "runs": projections.runs(store, on_answer, place, strays),
        }
        for work, projection in watched.items():
            key = projection.kind.plural + suffix
            loops[work + suffix] = partial(
                list_and_watch,
                client,
                projection,
                partial(_note_time, progress.listed_at, key),
                partial(_note_time, progress.last_event_at, key),
            )
        loops["build logs" + suffix] = partial(list_and_watch, client, logs[name].projection, lambda: None)
    return loops


def _note_time(times: dict[str, float], key: str) -> None:
    times[key] = time.monotonic()


def _object_loops(
    config: ApiConfig, store: Store, kube: KubeClient, strays: StrayRuns
) -> dict[str, LoopBody]:
    """Return the loops that compare objects with the index, or write and delete them."""
    budgets = BudgetRecorder(store, kube, config.prices)
    notifications = FailingNotificationsRecorder(store, kube)
    retention = _retention(config)

    async def recover_runs() -> None:
        accepted_before = datetime.now(UTC)
        while True:
            await recover_all(store, kube, accepted_before, config.claims_not_before)
            await asyncio.sleep(RECOVER_INTERVAL_SECONDS)
            accepted_before = datetime.now(UTC) - RECOVER_AFTER

    async def resync_objects() -> None:
        while True:
            await asyncio.sleep(RESYNC_INTERVAL_SECONDS)
            for name in config.served_namespaces:
                try:
                    await resync(store, kube.at(name))
                except (errors.KubeError, StoreUnavailable) as error:
                    log.warning("resync failed", namespace=name, error=str(error))

    async def prune() -> None:
        await prune_objects(store, kube, datetime.now(UTC), retention)
        await prune_strays(store, kube, strays, datetime.now(UTC), retention)

    return {
        "completion": recover_runs,
        "resync": resync_objects,
        "pruning": partial(_repeat, prune, min(PRUNE_INTERVAL_SECONDS, config.run_ttl)),
        "budgets": partial(
            _repeat, lambda: budgets.record_all(datetime.now(UTC)), ACCOUNTING_INTERVAL_SECONDS
        ),
        "failing notifications": partial(
            _repeat, lambda: notifications.record_all(datetime.now(UTC)), ACCOUNTING_INTERVAL_SECONDS
        ),
    }


def _retention(config: ApiConfig) -> RetentionPolicy:
    return RetentionPolicy(config.record_ttl, config.run_ttl, config.limits, config.plans)


def _store_loops(config: ApiConfig, store: Store) -> dict[str, LoopBody]:
    """Return the loops that keep the store."""
    maintenance = MaintenanceRound(store, _retention(config), config.seal_after)
    postponed = PostponedRuns()

    async def account_usage() -> None:
        below: int | None = NEWEST
        while True:
            if await account_batch(store, postponed, datetime.now(UTC)):
                continue
            if below is not None:
                below = await measure_batch(store, below)
            await asyncio.sleep(ACCOUNTING_INTERVAL_SECONDS if below is None else BUSY_INTERVAL_SECONDS)

    return {
        "keeping": partial(
            _repeat_batches,
            lambda: maintenance.run_once(datetime.now(UTC)),
            min(ROUND_INTERVAL_SECONDS, config.seal_after),
        ),
        "measuring": partial(
            _repeat, lambda: store.storage_meter.measure(datetime.now(UTC)), STORAGE_STATS_INTERVAL_SECONDS
        ),
        "sweeping": partial(
            _repeat, lambda: delete_orphans(store, datetime.now(UTC)), ORPHAN_SWEEP_INTERVAL_SECONDS
        ),
        "forgetting": partial(
            _repeat_batches,
            lambda: store.idempotency.delete_expired(datetime.now(UTC)),
            IDEMPOTENCY_EXPIRY_INTERVAL_SECONDS,
        ),
        "accounting": account_usage,
    }


async def _repeat(work: Callable[[], Awaitable[object]], interval: float) -> None:
    """Do the work every `interval` seconds."""
    while True:
        await work()
        await asyncio.sleep(interval)


async def _repeat_batches(work: Callable[[], Awaitable[int]], interval: float) -> None:
    """Do the work every `interval` seconds, and soon again while it returns that there is more."""
    while True:
        more = await work()
        await asyncio.sleep(BUSY_INTERVAL_SECONDS if more else interval)


def _suffix(config: ApiConfig, namespace: str) -> str:
    """Return what the names of a namespace's loops end with: nothing in the installation's own one."""
    return "" if namespace == config.namespace else f"@{namespace}"


async def cancel_all(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel the tasks, and once more after a long timeout: a library may lose a cancellation.

    The timeout is long because a second cancellation while a connection closes makes SQLAlchemy wait
    indefinitely for a thread that has ended.
    """
    pending = set(tasks)
    for timeout in CANCEL_TIMEOUTS_SECONDS:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=timeout)
        if not pending:
            return
    log.error("background loops not cancelled in time", work=sorted(task.get_name() for task in pending))
