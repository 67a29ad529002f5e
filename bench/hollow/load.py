"""Workloads for a control plane: objects created up to a concurrency limit until a count is reached.

Called by the measurements on hollow nodes, for Runs, Jobs and bare Pods alike.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.hollow.nodes import SELF_ENDING_LABELS, TOLERATION
from bench.runs.start import job_finished
from crds.kinds import POD, RUN, Kind
from crds.objects import Pod, Run
from kube import errors
from kube.client import KubeClient

FINISH_TIMEOUT_SECONDS = 600.0
PARALLEL_CREATES = 8
JOB = Kind("batch", "v1", "jobs", "Job")


@dataclass(frozen=True)
class KindWorkload:
    """A kind whose objects each do one piece of work: how to create one, and when it has finished."""

    kind: Kind
    body: Callable[[str], dict[str, Any]]
    ended: Callable[[dict[str, Any]], bool]


@dataclass
class EndTimes:
    """When each object finished, in monotonic seconds from the start."""

    at: list[float] = field(default_factory=list)
    seconds: float = 0.0
    """Until the last one finished."""

    def steady(self, in_flight: int) -> float:
        """Return the finished objects per second at full concurrency.

        Excludes the first objects, which start together and delay each other, and the last ones, when nothing
        new starts.
        """
        at = sorted(self.at)
        first, last = at[in_flight - 1], at[len(at) - in_flight - 1]
        return (len(at) - 2 * in_flight) / (last - first)


def runs(deployment: str, **inputs: Any) -> KindWorkload:
    """Return Runs of a deployment; `inputs` is their input."""
    spec = {"deployment": deployment, "input": inputs}
    return KindWorkload(RUN, lambda name: {"metadata": {"name": f"run-{name}"}, "spec": spec}, _run_ended)


def jobs(like: dict[str, Any]) -> KindWorkload:
    """Return Jobs of one pod like a run's; `like` is that pod's spec."""
    spec = {
        "backoffLimit": 0,
        "template": {"metadata": {"labels": SELF_ENDING_LABELS}, "spec": pod_spec(like)},
    }
    return KindWorkload(JOB, lambda name: {"metadata": {"name": name}, "spec": spec}, job_finished)


def _run_ended(raw: dict[str, Any]) -> bool:
    return Run(raw).ended


def pods(like: dict[str, Any]) -> KindWorkload:
    """Return bare Pods like a run's."""
    spec = pod_spec(like)
    return KindWorkload(
        POD, lambda name: {"metadata": {"name": name, "labels": SELF_ENDING_LABELS}, "spec": spec}, _pod_ended
    )


def _pod_ended(raw: dict[str, Any]) -> bool:
    return Pod(raw).finished


def pod_spec(like: dict[str, Any]) -> dict[str, Any]:
    """Return a run's pod spec without the parts for the runner."""
    dropped = ("activeDeadlineSeconds", "nodeName", "schedulerName", "serviceAccountName", "serviceAccount")
    crew = {key: value for key, value in like["containers"][0].items() if key not in ("env", "envFrom")}
    spec = {key: value for key, value in like.items() if key not in dropped}
    return {**spec, "containers": [crew], "tolerations": [TOLERATION]}


async def run_workload(kube: KubeClient, work: KindWorkload, in_flight: int, count: int) -> EndTimes:
    """Keep `in_flight` objects working until `count` were created; return when all have finished.

    Raises TimeoutError if they do not finish.
    """
    workload_run = _WorkloadRun(kube, work, count)
    started = time.monotonic()
    watch_task = asyncio.ensure_future(
        workload_run.follow((await kube.list(work.kind)).resource_version, started)
    )
    slots = asyncio.Semaphore(in_flight)
    workload_run.freed = slots.release
    try:
        creators = [asyncio.ensure_future(workload_run.create(slots)) for _ in range(PARALLEL_CREATES)]
        await asyncio.gather(*creators)
        async with asyncio.timeout(FINISH_TIMEOUT_SECONDS):
            while workload_run.waiting:
                await asyncio.sleep(0.05)
    finally:
        watch_task.cancel()
    workload_run.ends.seconds = max(workload_run.ends.at, default=0.0)
    return workload_run.ends


class _WorkloadRun:
    def __init__(self, kube: KubeClient, work: KindWorkload, count: int) -> None:
        self._kube, self._work = kube, work
        self._left = count
        self.waiting: set[str] = set()
        self.ends = EndTimes()
        self.freed: Callable[[], None] = lambda: None

    async def follow(self, version: str, started: float) -> None:
        while True:
            try:
                async for event in self._kube.watch(self._work.kind, version):
                    metadata = event.object["metadata"]
                    version = metadata["resourceVersion"]
                    name = metadata.get("name")
                    if event.type == "MODIFIED" and name in self.waiting and self._work.ended(event.object):
                        self.waiting.discard(name)
                        self.ends.at.append(time.monotonic() - started)
                        self.freed()
            except errors.KubeUnavailable:
                await asyncio.sleep(0.1)

    async def create(self, slots: asyncio.Semaphore) -> None:
        while self._left > 0:
            await slots.acquire()
            if self._left == 0:
                slots.release()
                return
            self._left -= 1
            body = self._work.body(f"hollow-{secrets.token_hex(6)}")
            self.waiting.add(body["metadata"]["name"])
            await self._kube.create(self._work.kind, body)


async def delete_all(kube: KubeClient, kind: Kind) -> None:
    """Delete all objects of a kind and wait until their pods are deleted. Raises TimeoutError."""
    async with asyncio.timeout(FINISH_TIMEOUT_SECONDS):
        while (await kube.list(kind)).items:
            # Background deletion: the garbage collector deletes the dependents.
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
            await kube.call("DELETE", kind.path(kube.namespace), body=body)
            await asyncio.sleep(0.5)
        while (await kube.list(POD)).items:
            await asyncio.sleep(0.5)
