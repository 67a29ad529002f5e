"""T4: Runs per second against Jobs per second on hollow nodes; T3: CPU time of their controllers.

Both have the same concurrency, the same pod and the same second of work, in turn on one control plane. The
API server, etcd, apiserver, scheduler and the process that simulates the runners share the machine with both.
"""

import asyncio
import statistics
from dataclasses import dataclass
from typing import Any

from bench.hollow import load
from bench.hollow.control_plane import HollowControlPlane, control_plane, plane_directory
from bench.hollow.load import KindWorkload
from bench.hollow.readings import cpu_seconds
from bench.hollow.service import HollowService, service
from bench.lib.finding import Finding
from crds.kinds import POD, RUN

OBJECTS_IN_FLIGHT = 50
OBJECTS_PER_ROUND = 250
"""The first and the last 50 do not count for the rate."""
ROUND_COUNT = 5
PEER_PROCESS = "kube-controller-manager"
ARGO_WORKFLOWS_PER_SECOND = (4.5, 13.5)
"""Published by Argo: with default settings, and tuned."""


@dataclass(frozen=True)
class RateRound:
    """One side's turn: `rate` per second; CPU time by process, for 1,000 objects."""

    rate: float
    cost: dict[str, float]


async def measure_round(
    hollow_service: HollowService, hollow: HollowControlPlane, work: KindWorkload
) -> RateRound:
    """Run one turn and delete its objects."""
    pids = {**hollow_service.pids(), **{name: process.pid for name, process in hollow.processes.items()}}
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    ends = await load.run_workload(hollow_service.testbed.kube, work, OBJECTS_IN_FLIGHT, OBJECTS_PER_ROUND)
    cost = {name: 1000 * (cpu_seconds(pid) - before[name]) / len(ends.at) for name, pid in pids.items()}
    await load.delete_all(hollow_service.testbed.kube, work.kind)
    return RateRound(ends.steady(OBJECTS_IN_FLIGHT), cost)


async def workloads(hollow_service: HollowService) -> tuple[KindWorkload, KindWorkload, dict[str, Any]]:
    """Return Jobs, Runs, and the spec of a Run's pod, which the Jobs copy."""
    runs = load.runs(hollow_service.testbed.deployment)
    await load.run_workload(hollow_service.testbed.kube, runs, 1, 1)
    pod = (await hollow_service.testbed.kube.list(POD)).items[0]
    await load.delete_all(hollow_service.testbed.kube, RUN)
    return load.jobs(pod["spec"]), runs, pod["spec"]


async def measure(_installation: object, rounds: int = ROUND_COUNT) -> list[Finding]:
    """Measure T4 and T3 in `rounds` pairs, after a discarded warm-up."""
    with plane_directory() as directory:
        async with control_plane(directory) as hollow, service(directory, hollow) as hollow_service:
            jobs, runs, _ = await workloads(hollow_service)
            pairs = []
            for _round in range(rounds + 1):
                pairs.append(
                    (
                        await measure_round(hollow_service, hollow, jobs),
                        await measure_round(hollow_service, hollow, runs),
                    )
                )
                await asyncio.sleep(1)
    return findings(pairs)


def findings(pairs: list[tuple[RateRound, RateRound]]) -> list[Finding]:
    """Return the findings of the rounds. Pure."""
    ours = [run for _, run in pairs[1:]]
    rate = statistics.median(run.rate for run in ours)
    comparison_with_argo = ", ".join(
        f"{rate / published:.1f} times {published}" for published in ARGO_WORKFLOWS_PER_SECOND
    )
    cost_texts = {
        side: ", ".join(
            f"{name} {statistics.median(rate_round.cost[name] for rate_round in rounds):.1f}"
            for name in rounds[0].cost
        )
        for side, rounds in (("Runs", ours), ("Jobs", [job for job, _ in pairs[1:]]))
    }
    return [
        Finding(
            "T4",
            f"sustained, {OBJECTS_IN_FLIGHT} at work, on hollow nodes",
            "/s",
            pairs=[(job.rate, run.rate) for job, run in pairs],
            peer="Jobs",
            fact=f"Argo's published rates: {comparison_with_argo}",
        ),
        Finding(
            "T3",
            "processor time of the controller for 1,000 Runs",
            "s",
            pairs=[(job.cost[PEER_PROCESS], run.cost["controller"]) for job, run in pairs],
            peer=f"{PEER_PROCESS} for 1,000 Jobs",
        ),
        Finding(
            "T3", "processor time of the API server for 1,000 Runs", values=[run.cost["api"] for run in ours]
        ),
        *(
            Finding("T3", f"processor time of all for 1,000 {side}, s", "", fact=cost_text)
            for side, cost_text in cost_texts.items()
        ),
    ]
