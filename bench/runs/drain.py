"""T1: the time until many Runs have finished, against as many bare Pods and as many default Jobs.

Also the CPU time of controller and API server per Run, which does not depend on the load of a shared machine.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench.lib import cpu, pods
from bench.lib.finding import Finding
from bench.lib.installation import JOB, MeasuredInstallation
from bench.runs.start import job_finished
from crds.kinds import POD, RUN, Kind
from crds.objects import Run

PARALLEL_CREATES = 8
DELETION_TIMEOUT_SECONDS = 600.0
ROUND_COUNT = 3
SINGLE_ROUND_COUNT = 500
"""From this count on, one round: it takes a quarter of an hour, so a warm-up does not matter."""


async def _drain(
    installation: MeasuredInstallation,
    kind: Kind,
    bodies: list[dict[str, Any]],
    ended: Callable[[dict[str, Any]], bool],
) -> float:
    """Create all, eight in parallel, and watch until the last has finished; return the seconds."""
    waiting = {body["metadata"]["name"] for body in bodies}
    slots = asyncio.Semaphore(PARALLEL_CREATES)
    version = (await installation.kube.list(kind)).resource_version
    finished = asyncio.Event()

    async def follow() -> None:
        nonlocal version
        while waiting:
            async for event in installation.kube.watch(kind, version):
                version = event.object["metadata"]["resourceVersion"]
                if event.type in ("ADDED", "MODIFIED") and ended(event.object):
                    waiting.discard(event.object["metadata"]["name"])
                    if not waiting:
                        break
        finished.set()

    async def create(body: dict[str, Any]) -> None:
        async with slots:
            await installation.kube.create(kind, body)

    started = time.monotonic()
    watch_task = asyncio.ensure_future(follow())
    await asyncio.gather(*(create(body) for body in bodies))
    await asyncio.wait_for(finished.wait(), 3600)
    await watch_task
    return time.monotonic() - started


async def _delete(installation: MeasuredInstallation, kind: Kind, bodies: list[dict[str, Any]]) -> None:
    """Delete what a drain has created, and wait for the end of its pods: they cost the node."""
    names = tuple(body["metadata"]["name"] for body in bodies)
    for name in names:
        await installation.kube.delete(kind, name)
    async with asyncio.timeout(DELETION_TIMEOUT_SECONDS):
        while any(
            pod["metadata"]["name"].startswith(names) for pod in (await installation.kube.list(POD)).items
        ):
            await asyncio.sleep(1)


def _run_ended(raw: dict[str, Any]) -> bool:
    return Run(raw).ended


def _pod_ended(raw: dict[str, Any]) -> bool:
    return (raw.get("status") or {}).get("phase") in ("Succeeded", "Failed")


async def measure(installation: MeasuredInstallation, count: int = 100) -> list[Finding]:
    """Measure T1 with `count` of each; discard the first round if there are several."""
    pod_spec = await pods.template(installation)

    async def of_pods() -> float:
        bodies = [pods.pod(pod_spec) for _ in range(count)]
        try:
            return await _drain(installation, POD, bodies, _pod_ended)
        finally:
            await _delete(installation, POD, bodies)

    async def of_jobs() -> float:
        bodies = [pods.job(pod_spec) for _ in range(count)]
        try:
            return await _drain(installation, JOB, bodies, job_finished)
        finally:
            await _delete(installation, JOB, bodies)

    cpu_spent: list[tuple[float, float]] = []

    async def of_runs() -> float:
        before = await cpu.process_cpu_seconds(installation)
        spec = {"deployment": installation.object_name}
        bodies = [
            {"metadata": {"name": f"run-bench-{secrets.token_hex(5)}"}, "spec": spec} for _ in range(count)
        ]
        seconds = await _drain(installation, RUN, bodies, _run_ended)
        after = await cpu.process_cpu_seconds(installation)
        cpu_spent.append((after[0] - before[0], after[1] - before[1]))
        for body in bodies:
            await installation.kube.delete(RUN, body["metadata"]["name"])
        return seconds

    sides: list[Callable[[], Awaitable[float]]] = [of_pods, of_jobs, of_runs]
    rounds = 1 if count >= SINGLE_ROUND_COUNT else ROUND_COUNT
    rounds_taken = [[await side() for side in sides] for _ in range(rounds)]
    fact = "one round, nothing discarded" if rounds == 1 else ""
    return [
        Finding(
            "T1",
            f"{count} Runs until all have ended",
            pairs=[(p, r) for p, _, r in rounds_taken],
            peer=f"{count} Pods",
            fact=fact,
        ),
        Finding(
            "T1",
            f"{count} Runs until all have ended",
            pairs=[(j, r) for _, j, r in rounds_taken],
            peer=f"{count} Jobs",
            fact=fact,
        ),
        *(
            Finding(
                "T1",
                f"processor time of the {name} a Run",
                "ms",
                values=[1000 * s / count for s in process_seconds],
            )
            for name, process_seconds in zip(cpu.PROCESSES, zip(*cpu_spent, strict=True), strict=True)
        ),
    ]
