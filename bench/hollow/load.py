"""Objects made and ended at a plane: as many at once as are allowed, one after the other, until enough.

Called by the measurements on hollow nodes, for Runs, Jobs and bare Pods alike.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.hollow.nodes import ENDS, TOLERATION
from bench.runs.start import complete
from crds.kinds import POD, RUN, Kind
from crds.objects import Pod, Run
from kube import errors
from kube.client import Kube

PATIENCE = 600.0
CREATORS = 8
JOB = Kind("batch", "v1", "jobs", "Job")


@dataclass(frozen=True)
class Work:
    """A kind of which each object is one piece of work: how one is made, and when it has ended."""

    kind: Kind
    body: Callable[[str], dict[str, Any]]
    ended: Callable[[dict[str, Any]], bool]


@dataclass
class Ends:
    """When which ended, in monotonic seconds from the begin."""

    at: list[float] = field(default_factory=list)
    seconds: float = 0.0
    """Until the last one had."""

    def steady(self, in_flight: int) -> float:
        """How many ended in a second while as many as were allowed were at work.

        The first ones begin all at once and wait for one another; at the last ones, nothing new is begun.
        """
        at = sorted(self.at)
        first, last = at[in_flight - 1], at[len(at) - in_flight - 1]
        return (len(at) - 2 * in_flight) / (last - first)


def runs(deployment: str, **asked: Any) -> Work:
    """Runs of a deployment; `asked` is their input."""
    spec = {"deployment": deployment, "input": asked}
    return Work(RUN, lambda name: {"metadata": {"name": f"run-{name}"}, "spec": spec}, _run_ended)


def jobs(like: dict[str, Any]) -> Work:
    """Jobs of one pod like a run's, `like` being that one's spec."""
    spec = {"backoffLimit": 0, "template": {"metadata": {"labels": ENDS}, "spec": pod_spec(like)}}
    return Work(JOB, lambda name: {"metadata": {"name": name}, "spec": spec}, complete)


def _run_ended(raw: dict[str, Any]) -> bool:
    return Run(raw).ended


def pods(like: dict[str, Any]) -> Work:
    """Bare Pods like a run's."""
    spec = pod_spec(like)
    return Work(POD, lambda name: {"metadata": {"name": name, "labels": ENDS}, "spec": spec}, _pod_ended)


def _pod_ended(raw: dict[str, Any]) -> bool:
    return Pod(raw).finished


def pod_spec(like: dict[str, Any]) -> dict[str, Any]:
    """A run's pod without what is for the runner."""
    dropped = ("activeDeadlineSeconds", "nodeName", "schedulerName", "serviceAccountName", "serviceAccount")
    crew = {key: value for key, value in like["containers"][0].items() if key not in ("env", "envFrom")}
    kept = {key: value for key, value in like.items() if key not in dropped}
    return {**kept, "containers": [crew], "tolerations": [TOLERATION]}


async def flow(kube: Kube, work: Work, in_flight: int, count: int) -> Ends:
    """Keeps `in_flight` at work until `count` were made; returns when all have ended.

    Raises TimeoutError where they do not.
    """
    load = _Load(kube, work, count)
    begun = time.monotonic()
    following = asyncio.ensure_future(load.follow((await kube.list(work.kind)).resource_version, begun))
    places = asyncio.Semaphore(in_flight)
    load.freed = places.release
    try:
        creators = [asyncio.ensure_future(load.create(places)) for _ in range(CREATORS)]
        await asyncio.gather(*creators)
        async with asyncio.timeout(PATIENCE):
            while load.waiting:
                await asyncio.sleep(0.05)
    finally:
        following.cancel()
    load.ends.seconds = max(load.ends.at, default=0.0)
    return load.ends


class _Load:
    def __init__(self, kube: Kube, work: Work, count: int) -> None:
        self._kube, self._work = kube, work
        self._left = count
        self.waiting: set[str] = set()
        self.ends = Ends()
        self.freed: Callable[[], None] = lambda: None

    async def follow(self, version: str, begun: float) -> None:
        while True:
            try:
                async for event in self._kube.watch(self._work.kind, version):
                    metadata = event.object["metadata"]
                    version = metadata["resourceVersion"]
                    name = metadata.get("name")
                    if event.type == "MODIFIED" and name in self.waiting and self._work.ended(event.object):
                        self.waiting.discard(name)
                        self.ends.at.append(time.monotonic() - begun)
                        self.freed()
            except errors.Unavailable:
                await asyncio.sleep(0.1)

    async def create(self, places: asyncio.Semaphore) -> None:
        while self._left > 0:
            await places.acquire()
            if self._left == 0:
                places.release()
                return
            self._left -= 1
            body = self._work.body(f"hollow-{secrets.token_hex(6)}")
            self.waiting.add(body["metadata"]["name"])
            await self._kube.create(self._work.kind, body)


async def cleared(kube: Kube, kind: Kind) -> None:
    """Deletes all of a kind and waits until their pods are gone too. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE):
        while (await kube.list(kind)).items:
            # In the background: with the owner, the collector takes what it owns.
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
            await kube.call("DELETE", kind.path(kube.namespace), body=body)
            await asyncio.sleep(0.5)
        while (await kube.list(POD)).items:
            await asyncio.sleep(0.5)
