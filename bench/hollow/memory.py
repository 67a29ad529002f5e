"""T3: memory of controller and facade, idle and with thousands of Runs alive on nodes without a machine.

What a live Run costs is told between two levels of them, after as many have come and gone, so that what a
process takes once (modules, connections, its heap's first growth) is not in it.
"""

import asyncio

from bench.hollow import load
from bench.hollow.control_plane import control_plane, plane_directory
from bench.hollow.readings import ProcessMemory, memory
from bench.hollow.service import HollowService, service
from bench.lib.finding import Finding
from crds.kinds import RUN

LIVE_RUNS = 1000
SETTLE_SECONDS = 20.0
LIVE_RUN_SECONDS = 3600.0


async def _settled_memory(hollow_service: HollowService) -> dict[str, ProcessMemory]:
    await asyncio.sleep(SETTLE_SECONDS)
    return {name: memory(pid) for name, pid in hollow_service.pids().items()}


async def _start_live_runs(hollow_service: HollowService, count: int, expected_running: int) -> None:
    """Makes `count` Runs that stay, and returns once `wanted` are shown as Running."""
    workload = load.runs(hollow_service.testbed.deployment, seconds=LIVE_RUN_SECONDS)
    for number in range(count):
        await hollow_service.testbed.kube.create(RUN, workload.body(f"alive-{expected_running}-{number:05d}"))
    async with asyncio.timeout(load.FINISH_TIMEOUT_SECONDS):
        while True:
            listing = await hollow_service.testbed.kube.list(RUN, fields="status.phase=Running")
            if len(listing.items) >= expected_running:
                return
            await asyncio.sleep(1)


async def measure(_ground: object, live: int = LIVE_RUNS) -> list[Finding]:
    """Idle after the start, idle after `live` Runs have come and gone, then with `live` and twice as many."""
    with plane_directory() as directory:
        async with control_plane(directory) as hollow, service(directory, hollow) as hollow_service:
            at_start = await _settled_memory(hollow_service)
            workload = load.runs(hollow_service.testbed.deployment)
            await load.run_workload(hollow_service.testbed.kube, workload, live, live)
            await load.delete_all(hollow_service.testbed.kube, RUN)
            levels = [await _settled_memory(hollow_service)]
            for expected_running in (live, 2 * live):
                await _start_live_runs(hollow_service, live, expected_running)
                levels.append(await _settled_memory(hollow_service))
    return [finding(name, live, at_start[name], [level[name] for level in levels]) for name in at_start]


def finding(name: str, live: int, at_start: ProcessMemory, levels: list[ProcessMemory]) -> Finding:
    """What the levels (none, `live`, twice as many alive) show of a process. Pure."""
    idle, loaded, doubled = levels
    mib = 2**20
    second_run_kib = (doubled.private - loaded.private) / live / 1024
    first_run_kib = (loaded.private - idle.private) / live / 1024
    return Finding(
        "T3",
        f"memory of the {name}, Runs on hollow nodes",
        "",
        fact=f"{at_start.resident / mib:.0f} MiB idle ({at_start.private / mib:.0f} private), "
        f"{idle.resident / mib:.0f} after {live} Runs came and went, "
        f"{loaded.resident / mib:.0f} with {live} alive, {doubled.resident / mib:.0f} with {2 * live}; "
        f"{first_run_kib:.1f} KiB for each of the first {live}, {second_run_kib:.1f} of the second",
    )
