"""T3: memory of controller and facade, idle and with thousands of Runs alive on nodes without a machine.

What a live Run costs is told between two levels of them, after as many have come and gone, so that what a
process takes once (modules, connections, its heap's first growth) is not in it.
"""

import asyncio

from bench.hollow import load
from bench.hollow.control_plane import place, plane
from bench.hollow.readings import Memory, memory
from bench.hollow.service import Service, service
from bench.lib.finding import Finding
from crds.kinds import RUN

LIVE = 1000
QUIET_SECONDS = 20.0
ENDLESS = 3600.0


async def _quiet(found: Service) -> dict[str, Memory]:
    await asyncio.sleep(QUIET_SECONDS)
    return {name: memory(pid) for name, pid in found.pids().items()}


async def _alive(found: Service, count: int, wanted: int) -> None:
    """Makes `count` Runs that stay, and returns once `wanted` are shown as Running."""
    work = load.runs(found.yard.deployment, seconds=ENDLESS)
    for number in range(count):
        await found.yard.kube.create(RUN, work.body(f"alive-{wanted}-{number:05d}"))
    async with asyncio.timeout(load.PATIENCE):
        while True:
            listing = await found.yard.kube.list(RUN, fields="status.phase=Running")
            if len(listing.items) >= wanted:
                return
            await asyncio.sleep(1)


async def measure(_ground: object, live: int = LIVE) -> list[Finding]:
    """Idle after the start, idle after `live` Runs have come and gone, then with `live` and twice as many."""
    with place() as directory:
        async with plane(directory) as ground, service(directory, ground) as found:
            fresh = await _quiet(found)
            brief = load.runs(found.yard.deployment)
            await load.flow(found.yard.kube, brief, live, live)
            await load.cleared(found.yard.kube, RUN)
            levels = [await _quiet(found)]
            for wanted in (live, 2 * live):
                await _alive(found, live, wanted)
                levels.append(await _quiet(found))
    return [finding(name, live, fresh[name], [level[name] for level in levels]) for name in fresh]


def finding(name: str, live: int, fresh: Memory, levels: list[Memory]) -> Finding:
    """What the levels (none, `live`, twice as many alive) show of a process. Pure."""
    none, once, twice = levels
    mib = 2**20
    a_run = (twice.private - once.private) / live / 1024
    first = (once.private - none.private) / live / 1024
    return Finding(
        "T3",
        f"memory of the {name}, Runs on hollow nodes",
        "",
        fact=f"{fresh.resident / mib:.0f} MiB idle ({fresh.private / mib:.0f} private), "
        f"{none.resident / mib:.0f} after {live} Runs came and went, "
        f"{once.resident / mib:.0f} with {live} alive, {twice.resident / mib:.0f} with {2 * live}; "
        f"{first:.1f} KiB for each of the first {live}, {a_run:.1f} of the second",
    )
