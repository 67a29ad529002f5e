"""API outages of minutes: the output of crews is kept, requests by kubectl are executed.

Longer than any single call is tried for, and shorter than what is promised to a pod that waits for its
claim (five minutes), so that all of it must end well.
"""

import asyncio
import time
from dataclasses import replace

import pytest

from crds.kinds import RUN
from crds.objects import Run
from tests.campaign.campaign import Campaign, campaign
from tests.campaign.checks.observed import CANCELED
from tests.campaign.ledger import START
from tests.campaign.reports.report import require_good
from tests.campaign.testbed import open_testbed

AWAY = 150.0
CONCURRENCY = 10
ARTIFACT = 300_000


def steady(seconds: float) -> dict:
    """A crew that says something twice a second and leaves a file."""
    return {"events": int(2 * seconds), "pause": 0.5, "artifact": ARTIFACT}


async def started(found: Campaign, runs: list[str]) -> None:
    """Wait until the crews are at work."""
    async with asyncio.timeout(180):
        while set(runs) - {entry.run for entry in found.testbed.ledger.entries() if entry.what == START}:
            await asyncio.sleep(0.2)


async def cancel(found: Campaign, run: str) -> float:
    """As `kubectl patch` does it; when that was."""
    await found.testbed.kube.patch(RUN, run, {"spec": {"cancel": True}})
    return time.time()


async def ended(found: Campaign, run: str, seconds: float) -> float:
    """Return when its object was seen finished, from any source."""
    async with asyncio.timeout(seconds):
        while not Run(await found.testbed.kube.get(RUN, run) or {}).ended:
            await asyncio.sleep(0.2)
    return time.time()


async def meanwhile(found: Campaign, stopped: str) -> None:
    """Actions during the API outage, and the end of the outage."""
    await found.read_events(stopped)
    begun = time.monotonic()
    await found.testbed.api.kill()
    await asyncio.sleep(20)
    made, unwanted = await found.work.apply([steady(5), steady(5)])
    found.work.requested = [
        replace(one, ends=frozenset((CANCELED,))) if one.run == unwanted else one
        for one in found.work.requested
    ]
    asked = await cancel(found, stopped)
    await asyncio.sleep(10)
    await cancel(found, unwanted)
    # None of it needs the API server: the pods get SIGTERM, and the controller sees them end.
    took = await ended(found, stopped, 100) - asked
    await ended(found, unwanted, 100)
    last = max(entry.at for entry in found.testbed.ledger.entries() if entry.run == stopped) - asked
    found.notes.append(
        f"canceled: the crew's last output {last:+.1f} s, the object's end {took:+.0f} s after it"
    )
    await asyncio.sleep(max(0.0, begun + AWAY - time.monotonic()))
    assert not Run(await found.testbed.kube.get(RUN, made) or {}).ended
    await found.testbed.api.start()


@pytest.mark.campaign
async def test_api_server_is_unavailable_for_minutes(place):
    async with (
        open_testbed(place, concurrency=CONCURRENCY) as testbed,
        campaign("test_api_server_is_unavailable_for_minutes", testbed, CONCURRENCY) as found,
    ):
        through = await found.work.post(steady(AWAY + 60))
        short = await found.work.post(steady(30))
        stopped = await found.work.post(steady(600), (CANCELED,))
        found.work.requested = [
            # It has 45 s to deliver its last data, without an API server; acknowledged data stays.
            replace(one, tolerant=True) if one.run == stopped else one
            for one in found.work.requested
        ]
        await started(found, [through, short, stopped])
        async with asyncio.timeout(60):
            while sum(entry.run == short for entry in testbed.ledger.entries()) < 40:
                await asyncio.sleep(0.2)
        await found.fault(f"API server away for {AWAY:.0f} s", meanwhile(found, stopped))
    unstarted = {one.run for one in found.work.requested if one.object_only and CANCELED in one.ends}
    assert unstarted and not unstarted & {
        entry.run for entry in testbed.ledger.entries() if entry.what == START
    }
    require_good(found.report)
