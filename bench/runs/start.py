"""L1, L3: created → first instruction, and crew's end → terminal status, sequential. L2: 20 in flight.

`L1=101` takes 101 pairs instead of 21: with 100 counted pairs the p99 is reported, too. A pod's first
instruction is the first line of its log: the runner's, or the Job's program's. All objects, ours and the
peer's, are created over one keep-alive connection to the apiserver.
"""

import asyncio
import json
import secrets
import statistics
import time
from typing import Any

from bench.lib import pods
from bench.lib.finding import Finding
from bench.lib.installation import JOB, MeasuredInstallation
from bench.lib.statistics import Pair
from crds.kinds import RUN
from crds.objects import Run
from tests.e2e.testbed import eventually

PAIR_COUNT = 21
RUNS_IN_FLIGHT = 20
ROUND_COUNT = 5


def _run_body(installation: MeasuredInstallation, entrypoint: str | None = None) -> dict[str, Any]:
    spec = {"deployment": installation.object_name, **({"entrypoint": entrypoint} if entrypoint else {})}
    return {"metadata": {"name": f"run-bench-{secrets.token_hex(5)}"}, "spec": spec}


async def _job(installation: MeasuredInstallation, pod_spec: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds from creation to first line, and from the program's end to Complete."""
    body = pods.job(pod_spec)
    name = body["metadata"]["name"]
    created = time.time()
    job = await installation.kube.create(JOB, body)
    ended_at = await _wait_seen(installation, JOB, name, job["metadata"]["resourceVersion"], job_finished)
    pod_list = json.loads(
        await installation.testbed.kubectl("get", "pods", "-l", f"job-name={name}", "-o", "json")
    )
    pod = pod_list["items"][0]["metadata"]["name"]
    started = await pods.first_line(installation, pod)
    ended = int((await pods.log(installation, pod)).split()[-1]) / 1e9
    await installation.kube.delete(JOB, name)
    return started - created, ended_at - ended


async def _run(installation: MeasuredInstallation) -> tuple[float, float]:
    """Return the same of a Run; its end is observed at the API's event stream."""
    body = _run_body(installation)
    name = body["metadata"]["name"]
    identifier = f"run_{name[4:]}"
    created = time.time()
    await installation.kube.create(RUN, body)
    terminal = await asyncio.wait_for(_terminal_event_time(installation, identifier), 60)
    started = await pods.first_line(installation, name)
    run = await installation.testbed.get(f"/v1/runs/{identifier}")
    return started - created, terminal - run["output"]["end_ns"] / 1e9


async def _terminal_event_time(installation: MeasuredInstallation, identifier: str) -> float:
    """Return when the last event of a run arrived; the run may not exist yet."""
    while True:
        try:
            async for message in installation.testbed.stream(f"/v1/runs/{identifier}/events", seconds=60):
                if message.event in ("run.completed", "run.failed", "run.canceled"):
                    return time.time()
        except Exception:
            await asyncio.sleep(0.02)


def job_finished(raw: dict[str, Any]) -> bool:
    """Return whether a Job has finished, successfully or not."""
    return any(
        condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
        for condition in (raw.get("status") or {}).get("conditions", ())
    )


async def _wait_seen(
    installation: MeasuredInstallation, kind: Any, name: str, version: str, condition: Any
) -> float:
    """Return when a watch showed an object that satisfies `condition`."""
    async for event in installation.kube.watch(kind, version, seconds=120):
        if event.type == "MODIFIED" and event.object["metadata"]["name"] == name and condition(event.object):
            return time.time()
    raise TimeoutError(name)


async def one_by_one(installation: MeasuredInstallation, count: int = PAIR_COUNT) -> list[Finding]:
    """Measure L1 and L3 with `count` pairs."""
    pod_spec = await pods.template(installation)
    starts: list[Pair] = []
    ends: list[Pair] = []
    for _ in range(count):
        peer_start, peer_end = await _job(installation, pod_spec)
        our_start, our_end = await _run(installation)
        starts.append((peer_start, our_start))
        ends.append((peer_end, our_end))
    peer = "bare Job, same image and limits"
    return [
        Finding("L1", "created → first instruction in the pod", pairs=starts, peer=peer),
        Finding("L3", "crew's end → terminal status seen", pairs=ends, peer="the Job's Complete"),
    ]


async def _jobs_in_flight(installation: MeasuredInstallation, pod_spec: dict[str, Any]) -> float:
    bodies = [pods.job(pod_spec) for _ in range(RUNS_IN_FLIGHT)]
    names = {body["metadata"]["name"] for body in bodies}
    created = time.time()
    await asyncio.gather(*(installation.kube.create(JOB, body) for body in bodies))

    async def done() -> int:
        items = await installation.kube.list(JOB)
        return sum(raw["metadata"]["name"] in names and job_finished(raw) for raw in items.items)

    await eventually(done, lambda count: count == RUNS_IN_FLIGHT, 180, 1.0)
    items = json.loads(await installation.testbed.kubectl("get", "pods", "-l", "job-name", "-o", "json"))[
        "items"
    ]
    pod_names = [
        item["metadata"]["name"] for item in items if item["metadata"]["labels"]["job-name"] in names
    ]
    starts = [await pods.first_line(installation, name) - created for name in pod_names]
    for name in names:
        await installation.kube.delete(JOB, name)
    return statistics.median(starts)


async def _runs_in_flight(installation: MeasuredInstallation) -> float:
    bodies = [_run_body(installation) for _ in range(RUNS_IN_FLIGHT)]
    names = [body["metadata"]["name"] for body in bodies]
    created = time.time()
    await asyncio.gather(*(installation.kube.create(RUN, body) for body in bodies))

    async def done() -> int:
        listing = await installation.kube.list(RUN)
        return sum(raw["metadata"]["name"] in names and Run(raw).ended for raw in listing.items)

    await eventually(done, lambda count: count == RUNS_IN_FLIGHT, 180, 1.0)
    return statistics.median([await pods.first_line(installation, name) - created for name in names])


async def in_flight(installation: MeasuredInstallation) -> list[Finding]:
    """Measure L2: medians of batches of 20 objects created in parallel."""
    pod_spec = await pods.template(installation)
    pairs = [
        (await _jobs_in_flight(installation, pod_spec), await _runs_in_flight(installation))
        for _ in range(ROUND_COUNT)
    ]
    return [
        Finding("L2", f"the same, {RUNS_IN_FLIGHT} at once", pairs=pairs, peer=f"{RUNS_IN_FLIGHT} bare Jobs")
    ]
