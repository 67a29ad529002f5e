"""Kopf as a trigger: watches that only enqueue keys.

Handlers are `on.event` and return None, so Kopf never writes to an object. Called by
`controller.process`; disabled with CREWYARD_KOPF=off.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import kopf
import structlog

from controller.runtime.event_handlers import EventHandlers
from controller.runtime.kopf_storages import NullDiffBaseStorage, NullProgressStorage
from controller.runtime.resync import MANAGED_PODS
from controller.signals import stop_on_signal
from crds import kinds, names
from crds.kinds import Kind

LOG = structlog.get_logger("watch")
WATCHED = (*kinds.OWN_KINDS, kinds.POD)
WATCHER = "watcher for "
"""What the names of Kopf's tasks begin with; then `PLURAL.VERSION.GROUP@NAMESPACE`."""
MIN_RESTART_SECONDS = 0.25
MAX_RESTART_SECONDS = 5.0
STABLE_SECONDS = 60.0
"""Uptime after which a failure of the watches resets the restart delay."""
MAX_PROBLEM_LENGTH = 500


class EndlessBackoffs:
    """0.1 s, doubling to 2 s, without end; can be iterated repeatedly, which Kopf does."""

    def __iter__(self) -> Iterator[float]:
        pause = 0.1
        while True:
            yield pause
            pause = min(2.0, pause * 2)


class NonKopfTasks(Collection[asyncio.Task[Any]]):
    """All tasks that are not Kopf's: on exit Kopf cancels every task it was not given as ignored."""

    _kopf_directory = str(Path(kopf.__file__).parent)

    def __contains__(self, task: object) -> bool:
        coroutine = task.get_coro() if isinstance(task, asyncio.Task) else None
        code = getattr(coroutine, "cr_code", None)
        return code is None or not code.co_filename.startswith(self._kopf_directory)

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        return (task for task in asyncio.all_tasks() if task in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def settings() -> kopf.OperatorSettings:
    """Return Kopf settings: watches that reconnect soon, detect silence and keep little in memory."""
    kopf_settings = kopf.OperatorSettings()
    kopf_settings.scanning.disabled = True
    kopf_settings.posting.enabled = False
    kopf_settings.peering.standalone = True
    kopf_settings.persistence.finalizer = f"{names.GROUP}/unused"
    kopf_settings.persistence.diffbase_storage = NullDiffBaseStorage()
    kopf_settings.persistence.progress_storage = NullProgressStorage()
    kopf_settings.watching.chunk_size = 500
    kopf_settings.watching.server_timeout = 10
    kopf_settings.watching.inactivity_timeout = 14
    kopf_settings.watching.connect_timeout = 5
    kopf_settings.watching.label_selectors["pods"] = MANAGED_PODS
    kopf_settings.queueing.idle_timeout = 0.05
    kopf_settings.networking.request_timeout = 30
    kopf_settings.networking.error_backoffs = EndlessBackoffs()
    kopf_settings.process.ultimate_exiting_timeout = None
    return kopf_settings


def registry(handlers: Mapping[str, EventHandlers]) -> kopf.OperatorRegistry:
    """Return a registry with one handler per kind; it passes objects to the `handlers` of their namespace."""
    kopf_registry = kopf.OperatorRegistry()
    kopf.on.login(registry=kopf_registry)(_login)
    for kind in WATCHED:
        group = kind.group or ""
        kopf.on.event(group, kind.version, kind.plural, registry=kopf_registry, id=f"saw-{kind.plural}")(
            _handler(kind, handlers)
        )
    return kopf_registry


def _handler(kind: Kind, handlers: Mapping[str, EventHandlers]) -> Any:
    async def on_event(event: Any, **_: Any) -> None:
        obj = event["object"]
        if event["type"] == "DELETED":
            handlers[obj["metadata"]["namespace"]].on_delete(kind, obj)
        else:
            listed = event["type"] is None  # Kopf lists before it watches.
            handlers[obj["metadata"]["namespace"]].on_change(kind, obj, listed=listed)

    return on_event


def _login(**kwargs: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)


async def watch(
    handlers: Mapping[str, EventHandlers],
    readable: Callable[[], list[str]],
    stop: asyncio.Event,
    process_stop: asyncio.Event,
) -> None:
    """Run Kopf until `stop` is set; restart it with increasing delay if it exits.

    `handlers` are by namespace; `readable` returns the namespaces to watch: a forbidden one would end all
    watches. The others are left to the resync until the next restart.
    Signals set `process_stop`. Kopf exits, with all its watches, at any unexpected response to a watch, such
    as a 410 in place of a stream. The resync covers changes missed meanwhile, and /healthz reports missing
    watches.
    """
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    pause = MIN_RESTART_SECONDS
    while not stop.is_set():
        began = time.monotonic()
        try:
            await _run_kopf(handlers, readable(), stop, process_stop)
            problem = "Kopf exited without an error"
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"[:MAX_PROBLEM_LENGTH]
        if stop.is_set():
            return
        pause = (
            MIN_RESTART_SECONDS
            if time.monotonic() - began > STABLE_SECONDS
            else min(2 * pause, MAX_RESTART_SECONDS)
        )
        LOG.warning("watches ended; restarting", problem=problem, seconds=pause)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await stop.wait()


async def _run_kopf(
    handlers: Mapping[str, EventHandlers],
    namespaces: list[str],
    stop: asyncio.Event,
    process_stop: asyncio.Event,
) -> None:
    tasks = await kopf.spawn_tasks(
        registry=registry(handlers),
        settings=settings(),
        standalone=True,
        namespaces=namespaces,
        stop_flag=stop,
    )
    # In the main thread Kopf has installed its signal handlers: only Kopf would stop, and be restarted.
    if threading.current_thread() is threading.main_thread():
        stop_on_signal(process_stop)
    await kopf.run_tasks(tasks, ignored=NonKopfTasks())


def missing_watchers(namespaces: Collection[str]) -> list[str]:
    """Return the kinds that lack a live watcher of a namespace: Kopf does not restart an ended one."""
    watched: dict[str, set[str]] = {}
    for task in asyncio.all_tasks():
        if not task.done() and (name := task.get_name()).startswith(WATCHER):
            plural, _, namespace = name.removeprefix(WATCHER).partition(".")
            watched.setdefault(plural, set()).add(namespace.rpartition("@")[2])
    return [kind.plural for kind in WATCHED if not watched.get(kind.plural, set()).issuperset(namespaces)]
