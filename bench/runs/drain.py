"""T1: the time until many Runs have ended, against as many bare Pods and as many default Jobs.

With it, the processor time of our two processes for each Run: it says what a shared machine's clock cannot.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench.lib import cpu, pods
from bench.lib.finding import Finding
from bench.lib.installation import JOB, Ground
from bench.runs.start import complete
from crds.kinds import POD, RUN, Kind
from crds.objects import Run

AT_ONCE = 8
ROUNDS = 3
MANY = 500
"""So many take one round: a quarter of an hour, against which a warming up is nothing."""


async def _drain(
    ground: Ground, kind: Kind, bodies: list[dict[str, Any]], ended: Callable[[dict[str, Any]], bool]
) -> float:
    """Creates all, eight at a time, and waits by a watch until the last has ended; seconds."""
    waiting = {body["metadata"]["name"] for body in bodies}
    places = asyncio.Semaphore(AT_ONCE)
    version = (await ground.kube.list(kind)).resource_version
    over = asyncio.Event()

    async def follow() -> None:
        nonlocal version
        while waiting:
            async for event in ground.kube.watch(kind, version):
                version = event.object["metadata"]["resourceVersion"]
                if event.type in ("ADDED", "MODIFIED") and ended(event.object):
                    waiting.discard(event.object["metadata"]["name"])
                    if not waiting:
                        break
        over.set()

    async def create(body: dict[str, Any]) -> None:
        async with places:
            await ground.kube.create(kind, body)

    begun = time.monotonic()
    following = asyncio.ensure_future(follow())
    await asyncio.gather(*(create(body) for body in bodies))
    await asyncio.wait_for(over.wait(), 3600)
    await following
    return time.monotonic() - begun


async def _removed(ground: Ground, kind: Kind, bodies: list[dict[str, Any]]) -> None:
    for body in bodies:
        await ground.kube.delete(kind, body["metadata"]["name"])
    while any(one["metadata"]["name"].startswith("bench-") for one in (await ground.kube.list(POD)).items):
        await asyncio.sleep(1)


def _run_ended(raw: dict[str, Any]) -> bool:
    return Run(raw).ended


def _pod_ended(raw: dict[str, Any]) -> bool:
    return (raw.get("status") or {}).get("phase") in ("Succeeded", "Failed")


async def measure(ground: Ground, count: int = 100) -> list[Finding]:
    """T1 for `count` of each; the first of the rounds is discarded, where there are several."""
    like = await pods.template(ground)

    async def of_pods() -> float:
        bodies = [pods.pod(like) for _ in range(count)]
        try:
            return await _drain(ground, POD, bodies, _pod_ended)
        finally:
            await _removed(ground, POD, bodies)

    async def of_jobs() -> float:
        bodies = [pods.job(like) for _ in range(count)]
        try:
            return await _drain(ground, JOB, bodies, complete)
        finally:
            await _removed(ground, JOB, bodies)

    spent: list[tuple[float, float]] = []

    async def of_runs() -> float:
        before = await cpu.seconds(ground)
        spec = {"deployment": ground.object_name}
        bodies = [
            {"metadata": {"name": f"run-bench-{secrets.token_hex(5)}"}, "spec": spec} for _ in range(count)
        ]
        took = await _drain(ground, RUN, bodies, _run_ended)
        after = await cpu.seconds(ground)
        spent.append((after[0] - before[0], after[1] - before[1]))
        for body in bodies:
            await ground.kube.delete(RUN, body["metadata"]["name"])
        return took

    sides: list[Callable[[], Awaitable[float]]] = [of_pods, of_jobs, of_runs]
    rounds = 1 if count >= MANY else ROUNDS
    taken = [[await side() for side in sides] for _ in range(rounds)]
    fact = "one round, nothing discarded" if rounds == 1 else ""
    return [
        Finding(
            "T1",
            f"{count} Runs until all have ended",
            pairs=[(p, r) for p, _, r in taken],
            peer=f"{count} Pods",
            fact=fact,
        ),
        Finding(
            "T1",
            f"{count} Runs until all have ended",
            pairs=[(j, r) for _, j, r in taken],
            peer=f"{count} Jobs",
            fact=fact,
        ),
        *(
            Finding(
                "T1", f"processor time of the {name} a Run", "ms", values=[1000 * s / count for s in each]
            )
            for name, each in zip(cpu.PROCESSES, zip(*spent, strict=True), strict=True)
        ),
    ]
