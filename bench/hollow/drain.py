"""T1 on hollow nodes: the time until many Runs have finished, against as many Jobs and bare Pods.

All are requested immediately, eight requests in parallel; each works for one second.
"""

from bench.hollow import load
from bench.hollow.control_plane import control_plane, plane_directory
from bench.hollow.rates import workloads
from bench.hollow.service import service
from bench.lib.finding import Finding

RUN_COUNT = 500
ROUND_COUNT = 2


async def measure(_installation: object, count: int = RUN_COUNT, rounds: int = ROUND_COUNT) -> list[Finding]:
    """Measure `rounds` of each kind in turn, after a discarded warm-up."""
    with plane_directory() as directory:
        async with control_plane(directory) as hollow, service(directory, hollow) as hollow_service:
            kube = hollow_service.testbed.kube
            jobs, runs, pod_spec = await workloads(hollow_service)
            rounds_taken: list[list[float]] = []
            for _round in range(rounds + 1):
                rounds_taken.append([])
                for work in (load.pods(pod_spec), jobs, runs):
                    ends = await load.run_workload(kube, work, count, count)
                    rounds_taken[-1].append(ends.seconds)
                    await load.delete_all(kube, work.kind)
    title = f"{count} Runs until all have ended, on hollow nodes"
    return [
        Finding("T1", title, pairs=[(row[column], row[2]) for row in rounds_taken], peer=f"{count} {peer}")
        for column, peer in enumerate(("Pods", "Jobs"))
    ]
