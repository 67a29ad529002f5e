"""Kills of the API server during posts and 200 open streams: nothing acknowledged is lost."""

import asyncio
import random

import pytest

from tests.campaign import schedule
from tests.campaign.campaign import Campaign, campaign
from tests.campaign.reports.report import require_good
from tests.campaign.testbed import open_testbed
from tests.campaign.workload import draw

CONCURRENCY = 8
LONG = 5
"""Runs that talk all the time; each has its share of the streams."""
STREAMS = 200


async def talking(found: Campaign, seconds: float) -> list[str]:
    """Create runs that emit events continuously."""
    steps = int(seconds * 4)
    script = {"events": steps, "pause": seconds / steps, "artifact": 300_000}
    return [await found.work.post(script) for _ in range(LONG)]


async def posting(found: Campaign, chance: random.Random, over: asyncio.Event) -> None:
    """Run, one after the other; every second one without a key, with an unknown outcome."""
    while not over.is_set():
        script = draw(chance, most_seconds=0.5)
        if chance.random() < 0.5:
            await found.work.post(script)
        else:
            await found.work.post_once(script)
        await found.work.upload(chance.randint(1, 300_000))
        await asyncio.sleep(chance.uniform(0.2, 0.8))


async def kills(found: Campaign, faults: tuple[schedule.ScheduledFault, ...]) -> None:
    """Each fault at its moment, or once the api is back from the one before."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for fault in faults:
        await asyncio.sleep(max(0.0, begun + fault.at - loop.time()))
        await found.fault(fault.kind, found.testbed.api.restart())


async def killed(name: str, place, count: int, seconds: float, seed: int) -> None:
    """`count` kills over `seconds`."""
    faults = schedule.draw(seed, {"API SIGKILL": count}, seconds)
    print(schedule.text(seed, faults, name))
    over = asyncio.Event()
    async with (
        open_testbed(place, concurrency=CONCURRENCY) as testbed,
        campaign(name, testbed, CONCURRENCY, seed) as found,
    ):
        runs = await talking(found, seconds)
        for number in range(STREAMS):
            found.readers.follow(runs[number % LONG])
        asking = [asyncio.create_task(posting(found, random.Random(seed + n), over)) for n in range(3)]
        await kills(found, faults)
        over.set()
        await asyncio.gather(*asking)
        found.notes.append(f"{len(found.work.uploads)} archives were stored")
    require_good(found.report)


@pytest.mark.nightly
async def test_api_server_kills(place, chosen):
    """Slow: ten kills, and 200 streams that are read to their end."""
    await killed("test_api_server_kills", place, count=10, seconds=12, seed=chosen(4))


@pytest.mark.campaign
async def test_fifty_api_server_kills(place, chosen):
    await killed("test_fifty_api_server_kills", place, count=50, seconds=150, seed=chosen(0))
