"""G4: what schedules cost the controller while none of them is due.

The default is 1,000 schedules in projects of 50, the most that one may have. Half of them have a time each
minute, but are suspended; the others are next due in a year.
"""

import asyncio
import secrets
import time

from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation
from bench.sources.poll import controller_cpu_seconds
from crds.kinds import PROJECT
from tests.e2e.testbed import eventually

SCHEDULE_COUNT = 1000
SCHEDULES_PER_PROJECT = 50
WINDOW_SECONDS = 60.0
YEARLY = {"cron": "0 0 1 1 *", "timeZone": "Europe/Berlin"}
EACH_MINUTE = {"cron": "* * * * *", "suspend": True}


async def measure(installation: MeasuredInstallation, count: int = SCHEDULE_COUNT) -> list[Finding]:
    """Measure the share of a core that the controller takes without and with the schedules."""
    prefix = f"bench-{secrets.token_hex(3)}"
    names = [f"{prefix}-{number}" for number in range(-(-count // SCHEDULES_PER_PROJECT))]
    schedules = [
        {"name": f"s{index}", **(YEARLY if index % 2 else EACH_MINUTE)}
        for index in range(SCHEDULES_PER_PROJECT)
    ]
    base = await _share(installation)
    try:
        for name in names:
            body = {"metadata": {"name": name}, "spec": {"schedules": schedules}}
            await installation.kube.create(PROJECT, body)
        await eventually(lambda: _recorded(installation, prefix), lambda found: found == len(names), 120, 1)
        share = await _share(installation)
    finally:
        for name in names:
            await installation.kube.delete(PROJECT, name)
    fact = f"{count} schedules, none due: {share:.1%} of a core, {base:.1%} without them"
    return [Finding("G4", "schedules of which none is due", fact=fact)]


async def _share(installation: MeasuredInstallation) -> float:
    cpu, started = await controller_cpu_seconds(installation), time.monotonic()
    await asyncio.sleep(WINDOW_SECONDS)
    return (await controller_cpu_seconds(installation) - cpu) / (time.monotonic() - started)


async def _recorded(installation: MeasuredInstallation, prefix: str) -> int:
    """Return how many of the projects have the state of all their schedules."""
    projects = (await installation.kube.list(PROJECT)).items
    return sum(
        item["metadata"]["name"].startswith(prefix)
        and len((item.get("status") or {}).get("schedules") or ()) == SCHEDULES_PER_PROJECT
        for item in projects
    )
