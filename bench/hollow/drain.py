"""T1 on nodes without a machine: the time until many Runs have ended, against as many Jobs and bare Pods.

All are asked for at once, eight requests at a time; each works for a second.
"""

from bench.hollow import load
from bench.hollow.control_plane import place, plane
from bench.hollow.rates import sides
from bench.hollow.service import service
from bench.lib.finding import Finding

COUNT = 500
ROUNDS = 2


async def measure(_ground: object, count: int = COUNT, rounds: int = ROUNDS) -> list[Finding]:
    """`rounds` of each in turn, after one that is discarded."""
    with place() as directory:
        async with plane(directory) as ground, service(directory, ground) as found:
            kube = found.yard.kube
            jobs, runs, like = await sides(found)
            taken: list[list[float]] = []
            for _round in range(rounds + 1):
                taken.append([])
                for work in (load.pods(like), jobs, runs):
                    ends = await load.flow(kube, work, count, count)
                    taken[-1].append(ends.seconds)
                    await load.cleared(kube, work.kind)
    what = f"{count} Runs until all have ended, on hollow nodes"
    return [
        Finding("T1", what, pairs=[(row[column], row[2]) for row in taken], peer=f"{count} {peer}")
        for column, peer in enumerate(("Pods", "Jobs"))
    ]
