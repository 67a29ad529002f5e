"""Pods that were started before their run: which of them have got one. Called by `api.internal.warm.wait`.

A watch of these pods alone, started by the first one that waits: an installation without them has no watch.
The controller binds a pod by its label and its owner; this process only reads them.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from aiohttp import web

from api.projection.list_watch import Projection, list_and_watch
from api.projection.restarts import run_forever
from crds import names
from crds.kinds import POD, RUN
from crds.objects import Pod
from crds.times import parse_time
from kube.client import KubeClient, Object

TOKEN_SLACK_SECONDS = 60


@dataclass(frozen=True)
class BoundRun:
    """The run of a pod; `expires` in epoch seconds is when its token ends."""

    run: str
    run_uid: str
    expires: int


@dataclass(frozen=True)
class _Seen:
    uid: str
    version: int
    run: BoundRun | None


class WarmPods:
    """The pods of one namespace."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._seen: dict[str, _Seen] = {}
        self._waiters: dict[str, set[asyncio.Future[None]]] = {}
        self._watch: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """The number of pods that wait at this process."""
        return len(self._waiters)

    async def bound_run(self, pod: str, uid: str, seconds: float) -> BoundRun | None:
        """Return the run of a pod as soon as it has one; None after `seconds`."""
        if self._watch is None and not self._closed:
            self._watch = asyncio.create_task(run_forever("warm_pods", self._read))
        end = asyncio.get_running_loop().time() + seconds
        while not self._closed:
            seen = self._seen.get(pod)
            if seen is not None and seen.uid == uid and seen.run is not None:
                return seen.run
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                break
            await self._change(pod, left)
        return None

    async def run(self, app: web.Application) -> AsyncIterator[None]:
        """Stop the watch with the application, and let no pod wait any more."""
        yield
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch

    def close(self) -> None:
        """Answer all pods that wait."""
        self._closed = True
        for name in list(self._waiters):
            self._wake(name)

    async def _read(self) -> None:
        projection = Projection(POD, self._apply, self._delete, self._versions, names.LABEL_WARM)
        await list_and_watch(self._kube, projection, lambda: None)

    async def _change(self, pod: str, seconds: float) -> None:
        changed = asyncio.get_running_loop().create_future()
        waiters = self._waiters.setdefault(pod, set())
        waiters.add(changed)
        try:
            async with asyncio.timeout(seconds):
                await changed
        except TimeoutError:
            return
        finally:
            waiters.discard(changed)
            if not waiters:
                self._waiters.pop(pod, None)

    def _wake(self, name: str) -> None:
        for waiter in self._waiters.get(name, ()):
            if not waiter.done():
                waiter.set_result(None)

    async def _apply(self, item: Object) -> None:
        pod = Pod(item)
        self._seen[pod.name] = _Seen(pod.uid, int(pod.resource_version), _run_of(pod))
        self._wake(pod.name)

    async def _delete(self, name: str, uid: str) -> None:
        seen = self._seen.get(name)
        if seen is not None and seen.uid == uid:
            del self._seen[name]

    async def _versions(self) -> dict[str, tuple[str, int]]:
        return {name: (seen.uid, seen.version) for name, seen in self._seen.items()}


def _run_of(pod: Pod) -> BoundRun | None:
    """Return the run that the controller gave to the pod: the label and the owner name it."""
    run_uid = pod.owner_uid(RUN)
    if pod.run is None or run_uid is None:
        return None
    started = pod.status.get("startTime")
    since = parse_time(str(started)) if started else pod.assigned
    seconds = int(pod.spec.get("activeDeadlineSeconds") or 0)
    return BoundRun(pod.run, run_uid, int(since.timestamp()) + seconds + TOKEN_SLACK_SECONDS)
