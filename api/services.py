"""What every route works with, assembled once by `api.app`."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web

from api.config import Config
from api.keyring import Keyring
from api.limits import RateLimiter
from api.metrics import Metrics
from api.store.store import Store
from crds.kube import Kube


class Streams:
    """The event streams that are open, so that a stop of the service can end them first."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self.closing = False

    def enter(self) -> None:
        """The current task is now a stream."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)

    def leave(self) -> None:
        """The current task's stream has ended."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.discard(task)

    def close(self) -> None:
        """Wakes every stream; each ends its answer properly, and its reader resumes elsewhere."""
        self.closing = True
        for task in self._tasks:
            task.cancel()


@dataclass(frozen=True)
class Services:
    """The parts of the facade; `now` is the clock."""

    config: Config
    store: Store
    kube: Kube
    keyring: Keyring
    limiter: RateLimiter
    metrics: Metrics
    streams: Streams
    caught_up: Callable[[], bool]
    """Whether all that lives in the cluster has been seen once since the start."""
    now: Callable[[], datetime]


SERVICES = web.AppKey("services", Services)
