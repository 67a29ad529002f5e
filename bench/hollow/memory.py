"""T3: memory of controller and API server, idle and with thousands of live Runs on hollow nodes.

The cost of a live Run is the difference between two levels, measured after as many Runs have been created and
deleted. It thus excludes one-time costs of a process (modules, connections, first heap growth).
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
    """Create `count` Runs that keep running; return once `expected_running` Runs are Running."""
    workload = load.runs(hollow_service.testbed.deployment, seconds=LIVE_RUN_SECONDS)
    for number in range(count):
        await hollow_service.testbed.kube.create(RUN, workload.body(f"alive-{expected_running}-{number:05d}"))
    async with asyncio.timeout(load.FINISH_TIMEOUT_SECONDS):
        while True:
            listing = await hollow_service.testbed.kube.list(RUN, fields="status.phase=Running")
            if len(listing.items) >= expected_running:
                return
            await asyncio.sleep(1)


async def measure(_installation: object, live: int = LIVE_RUNS) -> list[Finding]:
    """Measure idle, idle after `live` Runs were created and deleted, with `live`, and with twice as many."""
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
    """Return the finding for the levels (none, `live`, twice as many) of a process. Pure."""
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
