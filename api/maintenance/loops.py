"""What the facade does without being asked: projecting objects into rows, completing what a crash left,
writing claims to their objects, following build logs, pruning. Started by `api.app` as a cleanup context.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog
from aiohttp import web

from api.config import Config
from api.maintenance.accounting import account
from api.maintenance.orphan_blobs import sweep
from api.maintenance.prune_objects import prune
from api.maintenance.round import Keeper
from api.projection import projections
from api.projection.kaniko_logs import KanikoLogs
from api.projection.list_watch import Projection, follow
from api.projection.recover import FRESH, complete_all
from api.projection.resync import look
from api.store.errors import StoreUnavailable
from api.store.store import Store
from api.v1.runs import status_outbox
from kube import errors
from kube.client import Kube

log = structlog.get_logger()

COMPLETE_EVERY = 30.0
PRUNE_EVERY = 10.0
RESYNC_EVERY = 15.0
KEEP_EVERY = 10.0
KEEP_BUSY = 0.2
"""Between two rounds while there is more to do: others write too."""
MEASURE_EVERY = 60.0
SWEEP_EVERY = 6 * 3600.0
FORGET_EVERY = 3600.0
USES_EVERY = 10.0
ACCOUNT_EVERY = 5.0
MAX_PAUSE = 30.0
PATIENCE = (5.0, 5.0)
"""Seconds given to each cancellation; the kubelet gives twenty in all."""
STEADY = 60.0
"""Seconds after which a loop that ran counts as healthy again."""

Work = Callable[[], Awaitable[None]]


@dataclass
class Progress:
    """How far the projector is, for the readiness probe: when each kind was last listed whole."""

    listed: dict[str, float] = field(default_factory=dict)
    heard: dict[str, float] = field(default_factory=dict)
    """When each kind was last heard of, by a list or a watch (monotonic seconds)."""
    began: float = field(default_factory=time.monotonic)
    elsewhere: Callable[[], bool] = lambda: False
    """Whether another replica does the projecting."""

    @property
    def ready(self) -> bool:
        """Whether all that lives has been seen once."""
        return len(self.listed) == 3 or self.elsewhere()

    def silence(self, kind: str, now: float) -> float:
        """For how many seconds nothing was heard of a kind; 0 where another replica listens."""
        return 0.0 if self.elsewhere() else max(0.0, now - self.heard.get(kind, self.began))


def context(
    config: Config,
    store: Store,
    kube: Kube,
    progress: Progress | None = None,
    failed: Callable[[str], None] = lambda work: None,
) -> Callable[[web.Application], AsyncIterator[None]]:
    """A cleanup context for `app.cleanup_ctx` that runs all of it until the application stops.

    `failed` is called with the name of each work that failed and is begun again.
    """
    seen = progress or Progress()
    seen.elsewhere = lambda: store.leader.elsewhere

    async def leading() -> None:
        logs = KanikoLogs(store, kube)
        tasks = _begin(_of_one(config, store, kube, seen, logs), failed)
        try:
            await asyncio.wait(tasks)
        finally:
            await end(tasks)
            await logs.close()

    async def run(_app: web.Application) -> AsyncIterator[None]:
        tasks = _begin({**_of_each(store, kube), "leading": lambda: store.leader.lead(leading)}, failed)
        yield
        await end(tasks)

    return run


def _begin(works: dict[str, Work], failed: Callable[[str], None]) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(forever(name, work, failed), name=name) for name, work in works.items()]


def _of_each(store: Store, kube: Kube) -> dict[str, Work]:
    """What every replica does: it knows best of the claims it gave and the keys it saw."""

    async def uses() -> None:
        while True:
            await store.keys.write_uses()
            await asyncio.sleep(USES_EVERY)

    return {"outbox": lambda: status_outbox.deliver_all(store, kube), "uses of keys": uses}


def _of_one(
    config: Config, store: Store, kube: Kube, progress: Progress, logs: KanikoLogs
) -> dict[str, Work]:
    """What the leading replica does; two at once, for a moment, do no harm."""

    def projecting(projection: Projection) -> Work:
        def listed() -> None:
            progress.listed[projection.kind.plural] = time.monotonic()

        def heard() -> None:
            progress.heard[projection.kind.plural] = time.monotonic()

        return lambda: follow(kube, projection, listed, heard)

    async def complete() -> None:
        before = datetime.now(UTC)
        while True:
            await complete_all(store, kube, before)
            await asyncio.sleep(COMPLETE_EVERY)
            before = datetime.now(UTC) - FRESH

    async def resyncing() -> None:
        while True:
            await asyncio.sleep(RESYNC_EVERY)
            try:
                await look(store, kube)
            except (errors.KubeError, StoreUnavailable) as error:
                log.warning("resync failed", error=str(error))

    async def pruning() -> None:
        while True:
            await prune(store, kube, datetime.now(UTC), config.run_ttl, config.record_ttl)
            await asyncio.sleep(min(PRUNE_EVERY, config.run_ttl))

    async def keeping() -> None:
        keeper = Keeper(store, config.record_ttl, config.seal_after)
        while True:
            busy = await keeper.round(datetime.now(UTC))
            await asyncio.sleep(KEEP_BUSY if busy else min(KEEP_EVERY, config.seal_after))

    async def measuring() -> None:
        while True:
            await store.measure.look(datetime.now(UTC))
            await asyncio.sleep(MEASURE_EVERY)

    async def sweeping() -> None:
        while True:
            await sweep(store, datetime.now(UTC))
            await asyncio.sleep(SWEEP_EVERY)

    async def forget() -> None:
        while True:
            more = await store.idempotency.forget(datetime.now(UTC))
            await asyncio.sleep(KEEP_BUSY if more else FORGET_EVERY)

    async def accounting() -> None:
        while True:
            if not await account(store):
                await asyncio.sleep(ACCOUNT_EVERY)

    return {
        "projects": projecting(projections.projects(store)),
        "deployments": projecting(projections.deployments(store)),
        "runs": projecting(projections.runs(store)),
        "build logs": lambda: follow(kube, logs.projection, lambda: None),
        "completion": complete,
        "resync": resyncing,
        "pruning": pruning,
        "keeping": keeping,
        "measuring": measuring,
        "sweeping": sweeping,
        "forgetting": forget,
        "accounting": accounting,
    }


async def end(tasks: list[asyncio.Task[None]]) -> None:
    """Cancels, and long after that once more: a library may lose a cancellation.

    Not sooner: a second one that meets the closing of a connection leaves SQLAlchemy waiting for ever for a
    thread that has ended.
    """
    left = set(tasks)
    for seconds in PATIENCE:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=seconds)
        if not left:
            return
    log.error("background work does not end", work=sorted(task.get_name() for task in left))


async def forever(name: str, work: Work, failed: Callable[[str], None]) -> None:
    """Nothing that fails stays ended: it is begun again, later and later, and `failed` is told its name."""
    pause = 0.5
    while True:
        begun = time.monotonic()
        try:
            await work()
        except Exception:
            log.exception("background work failed", work=name)
            failed(name)
        pause = 0.5 if time.monotonic() - begun > STEADY else min(pause * 2, MAX_PAUSE)
        await asyncio.sleep(pause)
