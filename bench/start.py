"""L1 and L3: applied → first instruction, and crew's end → terminal status, against a bare Job.

A pod's first instruction is told by the first line of its log: the runner's, or the Job's program's.
Both sides are created with kubectl and waited for with `kubectl wait`, one
after the other, so that what the tools cost is the same on both sides; ours is
also seen through the API.
"""

import asyncio
import json
import secrets
import time

from bench import job
from bench.crew import BenchCrew
from bench.figures import Pair


async def _run(crew: BenchCrew) -> tuple[float, float]:
    name = f"run-bench-{secrets.token_hex(4)}"
    identifier = f"run_{name[4:]}"
    terminal: list[float] = []

    async def follow() -> None:
        while not terminal:
            try:
                async for message in crew.yard.stream(f"/v1/runs/{identifier}/events", seconds=60):
                    if message.event in ("run.completed", "run.failed", "run.canceled"):
                        terminal.append(time.time())
            except Exception:
                await asyncio.sleep(0.02)

    begun = time.time()
    await crew.yard.apply("Run", name, {"deployment": crew.deployment.replace("_", "-", 1)}, "create")
    await asyncio.wait_for(follow(), 60)
    started = await job.first_line(crew.yard, name)
    run = await crew.yard.get(f"/v1/runs/{identifier}")
    return started - begun, terminal[0] - run["output"]["end_ns"] / 1e9


async def measure(crew: BenchCrew, count: int) -> tuple[list[Pair], list[Pair]]:
    """`count` pairs (Job, Run) of start and of end, in seconds."""
    first = await crew.yard.post("/v1/runs", {"deployment": crew.deployment})
    name = first["id"].replace("_", "-", 1)
    await crew.yard.kubectl("wait", f"crun/{name}", "--for=condition=Complete", "--timeout=60s")
    pod = json.loads(await crew.yard.kubectl("get", "pod", name, "-o", "json"))["spec"]
    starts, ends = [], []
    for _ in range(count):
        peer_start, peer_end = await job.run(crew.yard, job.manifest(pod, pod["containers"][0]["image"]))
        our_start, our_end = await _run(crew)
        starts.append((peer_start, our_start))
        ends.append((peer_end, our_end))
    return starts, ends
