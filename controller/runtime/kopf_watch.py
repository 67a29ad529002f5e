"""Kopf as a trigger: watches that enqueue keys, and nothing else.

Handlers are `on.event` and return None, so that Kopf never writes to an object.
Called by `controller.process`; with CREWYARD_KOPF=off nothing of this runs.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import kopf
import structlog

from controller.runtime.event_handlers import Observer
from controller.runtime.kopf_storages import NoEssence, NoProgress
from controller.runtime.resync import OURS
from controller.signals import end_by_signal
from crds import kinds, names
from crds.kinds import Kind

LOG = structlog.get_logger("watch")
WATCHED = (*kinds.OWN, kinds.POD)
FIRST_PAUSE = 0.25
MAX_PAUSE = 5.0
LASTING = 60.0
"""Seconds after which watches that end are no part of an earlier trouble."""
MOST_SAID = 500


class EndlessBackoffs:
    """0.1 s, doubling to 2 s, for ever; can be iterated again and again, which Kopf does."""

    def __iter__(self) -> Iterator[float]:
        pause = 0.1
        while True:
            yield pause
            pause = min(2.0, pause * 2)


class Foreign(Collection[asyncio.Task[Any]]):
    """Every task that is not Kopf's own: at its end Kopf cancels all tasks that are not named to it."""

    _home = str(Path(kopf.__file__).parent)

    def __contains__(self, task: object) -> bool:
        coroutine = task.get_coro() if isinstance(task, asyncio.Task) else None
        code = getattr(coroutine, "cr_code", None)
        return code is None or not code.co_filename.startswith(self._home)

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        return (task for task in asyncio.all_tasks() if task in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def settings() -> kopf.OperatorSettings:
    """Kopf's settings: watches that reconnect soon, tell when they are silent, and keep little in memory."""
    chosen = kopf.OperatorSettings()
    chosen.scanning.disabled = True
    chosen.posting.enabled = False
    chosen.peering.standalone = True
    chosen.persistence.finalizer = f"{names.GROUP}/unused"
    chosen.persistence.diffbase_storage = NoEssence()
    chosen.persistence.progress_storage = NoProgress()
    chosen.watching.chunk_size = 500
    chosen.watching.server_timeout = 10
    chosen.watching.inactivity_timeout = 14
    chosen.watching.connect_timeout = 5
    chosen.watching.label_selectors["pods"] = OURS
    chosen.queueing.idle_timeout = 0.05
    chosen.networking.request_timeout = 30
    chosen.networking.error_backoffs = EndlessBackoffs()
    chosen.process.ultimate_exiting_timeout = None
    return chosen


def registry(observer: Observer) -> kopf.OperatorRegistry:
    """One handler per kind that hands objects to `observer`."""
    made = kopf.OperatorRegistry()
    kopf.on.login(registry=made)(_login)
    for kind in WATCHED:
        group = kind.group or ""
        kopf.on.event(group, kind.version, kind.plural, registry=made, id=f"saw-{kind.plural}")(
            _handler(kind, observer)
        )
    return made


def _handler(kind: Kind, observer: Observer) -> Any:
    async def saw(event: Any, **_: Any) -> None:
        if event["type"] == "DELETED":
            observer.gone(kind, event["object"])
        else:
            observer.saw(kind, event["object"])

    return saw


def _login(**kwargs: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)


async def watch(observer: Observer, namespace: str, stop: asyncio.Event, process_stop: asyncio.Event) -> None:
    """Runs Kopf until `stop` is set; where it ends by itself another one begins, ever later.

    Signals set `process_stop`. Kopf ends at any answer to a watch that it does not expect, such as a 410 in
    place of a stream, and all its watches with it. The resync knows what is missed meanwhile, and /healthz
    that none of them lives.
    """
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    pause = FIRST_PAUSE
    while not stop.is_set():
        began = time.monotonic()
        try:
            await _kopf(observer, namespace, stop, process_stop)
            problem = "it gave no reason"
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"[:MOST_SAID]
        if stop.is_set():
            return
        pause = FIRST_PAUSE if time.monotonic() - began > LASTING else min(2 * pause, MAX_PAUSE)
        LOG.warning("the watches ended and begin again", problem=problem, seconds=pause)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await stop.wait()


async def _kopf(observer: Observer, namespace: str, stop: asyncio.Event, process_stop: asyncio.Event) -> None:
    tasks = await kopf.spawn_tasks(
        registry=registry(observer),
        settings=settings(),
        standalone=True,
        namespaces=[namespace],
        stop_flag=stop,
    )
    # In the main thread Kopf has taken the signals: it alone would end at one, and another one begin.
    if threading.current_thread() is threading.main_thread():
        end_by_signal(process_stop)
    await kopf.run_tasks(tasks, ignored=Foreign())


def missing_watchers() -> list[str]:
    """The kinds without a living watcher in this process: Kopf does not restart one that has ended."""
    tasks = {task.get_name() for task in asyncio.all_tasks() if not task.done()}
    return [
        kind.plural
        for kind in WATCHED
        if not any(name.startswith(f"watcher for {kind.plural}.") for name in tasks)
    ]
