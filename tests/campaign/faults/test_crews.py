"""Crews that die, want too much or do not listen: each ends with its reason, its neighbours unharmed."""

import asyncio
from collections.abc import Mapping

import pytest

from crds.kinds import POD, RUN
from crds.names import id_of
from tests.campaign.campaign import Campaign, campaign
from tests.campaign.pods import kill_runner
from tests.campaign.reports.report import require_good
from tests.campaign.testbed import open_testbed

CONCURRENCY = 8
STEPS = {"events": 3, "artifact": 1000}
QUIET = {"events": 20, "pause": 0.2, "artifact": 1000}
"""A neighbour, at work for a few seconds."""
FAULTS: Mapping[str, tuple[dict, str, str]] = {
    "crew SIGKILL": ({"exit": "killed"}, "failed:CrewError", "SIGKILL"),
    "crew segfault": ({"exit": "segfault"}, "failed:CrewError", "SIGSEGV"),
    "crew out of memory": ({"exit": "hungry"}, "failed:OOMKilled", "memory"),
    "crew fills the disk": ({"exit": "fills"}, "failed:StorageExceeded", "ephemeral-storage"),
    "crew forks": ({"exit": "forks"}, "succeeded", ""),
    "crew raises": ({"exit": "raises"}, "failed:CrewError", "the tide is out"),
}
SMALL = {
    "50 MB of output": ({"exit": "prints", "megabytes": 50}, "succeeded", ""),
    "20,000 files": ({"exit": "files", "count": 20_000}, "succeeded", ""),
}
GREAT = {
    "1 GB of output": ({"exit": "prints", "megabytes": 1024}, "succeeded", ""),
    # Directories and the kernel's own memory for the files count for the pod; whether they exceed a limit
    # depends on the machine.
    "1,000,000 files": (
        {"exit": "files", "count": 1_000_000},
        "succeeded or failed:StorageExceeded or failed:OOMKilled",
        "run.resources.limits",
    ),
}


async def message(found: Campaign, run: str) -> str:
    """What the Run says of its end."""
    await found.watcher.wait_ended({run}, found.end_seconds)
    raw = await found.testbed.kube.get(RUN, run)
    assert raw is not None
    return str((raw["status"].get("error") or {}).get("message", ""))


async def begun(found: Campaign, run: str) -> None:
    """Wait for the crew's last output before it only waits."""
    async with asyncio.timeout(found.end_seconds):
        while not any(entry.run == run and entry.number == 3 for entry in found.testbed.ledger.entries()):
            await asyncio.sleep(0.1)


async def faulty(found: Campaign, kind: str, script: dict, end: str, words: str) -> None:
    """A run with a fault and the same as a Job; a run that failed says what happened."""
    ends = tuple(end.split(" or "))
    run = await found.work.post({**STEPS, **script}, ends)
    job = await found.jobs.job({**STEPS, **script}, tuple({one.partition(":")[0] for one in ends}))
    found.faults[kind] += 1
    shown = await message(found, run)
    assert words in shown or (not shown and "succeeded" in end), f"{kind}: {shown}"
    await found.job_watcher.wait_ended({job}, found.end_seconds)
    ours, theirs = found.waited(found.watcher, run), found.waited(found.job_watcher, job)
    found.notes.append(f"{kind}: {ours:.1f} s from the crew's last output to the end; a Job {theirs:.1f} s")


async def runner_killed(found: Campaign) -> None:
    """SIGKILL to process 1 of the pod."""
    run = await found.work.post({"events": 3, "sleep": 600}, ("failed:RunnerLost",))
    await begun(found, run)
    pod = await found.testbed.kube.get(POD, run)
    assert pod is not None
    if not kill_runner(pod["metadata"]["uid"]):
        pytest.skip("the pods' processes are not on this machine")
    found.faults["runner SIGKILL"] += 1


async def deaf(found: Campaign, canceled: bool) -> None:
    """A crew that ignores SIGTERM is stopped by its timeout, or by who cancels it.

    The timeout is long enough that the crew has started by then, also where its process is slow to start.
    """
    script = {"events": 3, "exit": "deaf"}
    if canceled:
        run = await found.work.post(script, ("canceled",))
        await begun(found, run)
        await found.testbed.ask("POST", f"/v1/runs/{id_of(run)}/cancel")
    else:
        await found.work.post(script, ("failed:DeadlineExceeded",), timeout="20s")
    found.faults["crew ignores SIGTERM"] += 1


async def everything(
    name: str, place, faults: Mapping[str, tuple[dict, str, str]], neighbours: int, seconds: float = 600
) -> None:
    """All faults in parallel, with other runs; `seconds` until all have ended."""
    async with (
        open_testbed(place, concurrency=CONCURRENCY) as testbed,
        campaign(name, testbed, CONCURRENCY) as found,
    ):
        found.end_seconds = seconds
        for _ in range(neighbours):
            await found.work.post(dict(QUIET))
        async with asyncio.TaskGroup() as group:
            for kind, (script, end, words) in faults.items():
                group.create_task(faulty(found, kind, script, end, words))
            group.create_task(runner_killed(found))
            group.create_task(deaf(found, canceled=True))
            group.create_task(deaf(found, canceled=False))
    require_good(found.report)


@pytest.mark.nightly
async def test_crew_ends_in_every_way(place):
    """Slow: ten ways to end, next to other runs."""
    await everything("test_crew_ends_in_every_way", place, {**FAULTS, **SMALL}, neighbours=4)


@pytest.mark.campaign
async def test_crew_ends_with_great_load(place):
    await everything("test_crew_ends_with_great_load", place, {**FAULTS, **SMALL, **GREAT}, 20, seconds=3000)
