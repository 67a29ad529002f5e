"""T4: Runs a second against Jobs a second on nodes without a machine; T3: what each costs its controller.

Both with the same number at work at any moment, the same pod, the same second of work, in turn on one plane.
The facade, etcd, apiserver, scheduler and the process that plays the runners share the machine with both.
"""

import asyncio
import statistics
from dataclasses import dataclass
from typing import Any

from bench.hollow import load
from bench.hollow.control_plane import Plane, place, plane
from bench.hollow.load import Work
from bench.hollow.readings import cpu_seconds
from bench.hollow.service import Service, service
from bench.lib.finding import Finding
from crds.kinds import POD, RUN

IN_FLIGHT = 50
COUNT = 250
"""In a turn: the first and the last 50 do not count for the rate."""
ROUNDS = 5
THEIRS = "kube-controller-manager"
ARGO = (4.5, 13.5)
"""Workflows a second that Argo published: as it comes, and tuned."""


@dataclass(frozen=True)
class Round:
    """One side's turn: `rate` a second; processor time by process, for 1,000 of them."""

    rate: float
    cost: dict[str, float]


async def one(found: Service, ground: Plane, work: Work) -> Round:
    """One turn, cleared away afterwards."""
    pids = {**found.pids(), **{name: process.pid for name, process in ground.processes.items()}}
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    ends = await load.flow(found.yard.kube, work, IN_FLIGHT, COUNT)
    spent = {name: 1000 * (cpu_seconds(pid) - before[name]) / len(ends.at) for name, pid in pids.items()}
    await load.cleared(found.yard.kube, work.kind)
    return Round(ends.steady(IN_FLIGHT), spent)


async def sides(found: Service) -> tuple[Work, Work, dict[str, Any]]:
    """Jobs and Runs, and the spec of a Run's pod, which the Jobs' are like."""
    runs = load.runs(found.yard.deployment)
    await load.flow(found.yard.kube, runs, 1, 1)
    pod = (await found.yard.kube.list(POD)).items[0]
    await load.cleared(found.yard.kube, RUN)
    return load.jobs(pod["spec"]), runs, pod["spec"]


async def measure(_ground: object, rounds: int = ROUNDS) -> list[Finding]:
    """T4 and T3 of `rounds` pairs, after one that is discarded."""
    with place() as directory:
        async with plane(directory) as ground, service(directory, ground) as found:
            jobs, runs, _ = await sides(found)
            pairs = []
            for _round in range(rounds + 1):
                pairs.append((await one(found, ground, jobs), await one(found, ground, runs)))
                await asyncio.sleep(1)
    return findings(pairs)


def findings(pairs: list[tuple[Round, Round]]) -> list[Finding]:
    """What the rounds show. Pure."""
    ours = [run for _, run in pairs[1:]]
    rate = statistics.median(run.rate for run in ours)
    against = ", ".join(f"{rate / one:.1f} times {one}" for one in ARGO)
    whole = {
        side: ", ".join(
            f"{name} {statistics.median(one.cost[name] for one in rounds):.1f}" for name in rounds[0].cost
        )
        for side, rounds in (("Runs", ours), ("Jobs", [job for job, _ in pairs[1:]]))
    }
    return [
        Finding(
            "T4",
            f"sustained, {IN_FLIGHT} at work, on hollow nodes",
            "/s",
            pairs=[(job.rate, run.rate) for job, run in pairs],
            peer="Jobs",
            fact=f"Argo's published rates: {against}",
        ),
        Finding(
            "T3",
            "processor time of the controller for 1,000 Runs",
            "s",
            pairs=[(job.cost[THEIRS], run.cost["controller"]) for job, run in pairs],
            peer=f"{THEIRS} for 1,000 Jobs",
        ),
        Finding(
            "T3", "processor time of the facade for 1,000 Runs", values=[run.cost["api"] for run in ours]
        ),
        *(
            Finding("T3", f"processor time of all for 1,000 {side}, s", "", fact=said)
            for side, said in whole.items()
        ),
    ]
