"""L1, L3: created → first instruction, and crew's end → terminal status, one at a time. L2: 20 in flight.

`L1=101` takes 101 pairs instead of 21: from 100 counted ones on the slowest hundredth is told, too.
A pod's first instruction is told by the first line of its log: the runner's, or the Job's program's. All
objects are created over one kept connection to the apiserver, ours and the peer's.
"""

import asyncio
import json
import secrets
import statistics
import time
from typing import Any

from bench.lib import pods
from bench.lib.finding import Finding
from bench.lib.installation import JOB, Ground
from bench.lib.statistics import Pair
from crds.kinds import RUN
from crds.objects import Run
from tests.e2e.yard import eventually

PAIRS = 21
IN_FLIGHT = 20
ROUNDS = 5


def _run_body(ground: Ground, entrypoint: str | None = None) -> dict[str, Any]:
    spec = {"deployment": ground.object_name, **({"entrypoint": entrypoint} if entrypoint else {})}
    return {"metadata": {"name": f"run-bench-{secrets.token_hex(5)}"}, "spec": spec}


async def _job(ground: Ground, like: dict[str, Any]) -> tuple[float, float]:
    """Seconds from creation to first line, and from the program's end to Complete."""
    body = pods.job(like)
    name = body["metadata"]["name"]
    begun = time.time()
    made = await ground.kube.create(JOB, body)
    ended_at = await _seen(ground, JOB, name, made["metadata"]["resourceVersion"], complete)
    listed = json.loads(await ground.yard.kubectl("get", "pods", "-l", f"job-name={name}", "-o", "json"))
    pod = listed["items"][0]["metadata"]["name"]
    started = await pods.first_line(ground, pod)
    ended = int((await pods.log(ground, pod)).split()[-1]) / 1e9
    await ground.kube.delete(JOB, name)
    return started - begun, ended_at - ended


async def _run(ground: Ground) -> tuple[float, float]:
    """The same of a Run; its end is seen at the API's event stream."""
    body = _run_body(ground)
    name = body["metadata"]["name"]
    identifier = f"run_{name[4:]}"
    begun = time.time()
    await ground.kube.create(RUN, body)
    terminal = await asyncio.wait_for(_terminal(ground, identifier), 60)
    started = await pods.first_line(ground, name)
    run = await ground.yard.get(f"/v1/runs/{identifier}")
    return started - begun, terminal - run["output"]["end_ns"] / 1e9


async def _terminal(ground: Ground, identifier: str) -> float:
    """When the last event of a run arrived; the run need not be known yet."""
    while True:
        try:
            async for message in ground.yard.stream(f"/v1/runs/{identifier}/events", seconds=60):
                if message.event in ("run.completed", "run.failed", "run.canceled"):
                    return time.time()
        except Exception:
            await asyncio.sleep(0.02)


def complete(raw: dict[str, Any]) -> bool:
    """Whether a Job has ended, well or not."""
    return any(
        condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
        for condition in (raw.get("status") or {}).get("conditions", ())
    )


async def _seen(ground: Ground, kind: Any, name: str, version: str, good: Any) -> float:
    """When an object was seen to be `good`, by a watch."""
    async for event in ground.kube.watch(kind, version, seconds=120):
        if event.type == "MODIFIED" and event.object["metadata"]["name"] == name and good(event.object):
            return time.time()
    raise TimeoutError(name)


async def one_by_one(ground: Ground, count: int = PAIRS) -> list[Finding]:
    """L1 and L3, by `count` pairs."""
    like = await pods.template(ground)
    starts: list[Pair] = []
    ends: list[Pair] = []
    for _ in range(count):
        peer_start, peer_end = await _job(ground, like)
        our_start, our_end = await _run(ground)
        starts.append((peer_start, our_start))
        ends.append((peer_end, our_end))
    peer = "bare Job, same image and limits"
    return [
        Finding("L1", "created → first instruction in the pod", pairs=starts, peer=peer),
        Finding("L3", "crew's end → terminal status seen", pairs=ends, peer="the Job's Complete"),
    ]


async def _flight_of_jobs(ground: Ground, like: dict[str, Any]) -> float:
    bodies = [pods.job(like) for _ in range(IN_FLIGHT)]
    names = {body["metadata"]["name"] for body in bodies}
    begun = time.time()
    await asyncio.gather(*(ground.kube.create(JOB, body) for body in bodies))

    async def done() -> int:
        listed = await ground.kube.list(JOB)
        return sum(raw["metadata"]["name"] in names and complete(raw) for raw in listed.items)

    await eventually(done, lambda count: count == IN_FLIGHT, 180, 1.0)
    listed = json.loads(await ground.yard.kubectl("get", "pods", "-l", "job-name", "-o", "json"))["items"]
    mine = [one["metadata"]["name"] for one in listed if one["metadata"]["labels"]["job-name"] in names]
    starts = [await pods.first_line(ground, name) - begun for name in mine]
    for name in names:
        await ground.kube.delete(JOB, name)
    return statistics.median(starts)


async def _flight_of_runs(ground: Ground) -> float:
    bodies = [_run_body(ground) for _ in range(IN_FLIGHT)]
    names = [body["metadata"]["name"] for body in bodies]
    begun = time.time()
    await asyncio.gather(*(ground.kube.create(RUN, body) for body in bodies))

    async def done() -> int:
        listed = await ground.kube.list(RUN)
        return sum(raw["metadata"]["name"] in names and Run(raw).ended for raw in listed.items)

    await eventually(done, lambda count: count == IN_FLIGHT, 180, 1.0)
    return statistics.median([await pods.first_line(ground, name) - begun for name in names])


async def in_flight(ground: Ground) -> list[Finding]:
    """L2: medians of batches of 20 that are created at once."""
    like = await pods.template(ground)
    pairs = [(await _flight_of_jobs(ground, like), await _flight_of_runs(ground)) for _ in range(ROUNDS)]
    return [Finding("L2", f"the same, {IN_FLIGHT} at once", pairs=pairs, peer=f"{IN_FLIGHT} bare Jobs")]
