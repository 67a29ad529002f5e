"""Controllers with leader election: the standby leads after each kill; no run starts twice."""

import asyncio
import random
import statistics

import pytest

from controller.leader_election import LEASE_NAME
from crds.kinds import LEASE
from tests.campaign.campaign import campaign
from tests.campaign.faults.test_controller import work
from tests.campaign.reports.report import require_good
from tests.campaign.testbed import CampaignTestbed, open_testbed

ELECTION = {"CREWYARD_LEADER_ELECTION": "on"}


async def leader(testbed: CampaignTestbed) -> str:
    lease = await testbed.kube.get(LEASE, LEASE_NAME)
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")


async def killed(
    name: str, place, runs: int, kills: int, seconds: float, seed: int, concurrency: int
) -> None:
    """Kill the leader `kills` times, each time while its share of the `runs` is created.

    Two controllers stand by: one leads at once, the other while the killed one starts again.
    """
    async with (
        open_testbed(place, concurrency=concurrency, settings=ELECTION) as testbed,
        campaign(name, testbed, concurrency, seed) as found,
    ):
        found.end_seconds = 300 + 3 * runs
        chance, moments = random.Random(seed), random.Random(seed + 1)
        candidates = [testbed.controller, testbed.add_controller(), testbed.add_controller()]
        starts = {one: asyncio.create_task(one.start()) for one in candidates[1:]}
        takeovers = []
        loop = asyncio.get_running_loop()

        async def take_over() -> None:
            before = await leader(testbed)
            [active] = [one for one in candidates if before.endswith(f"-{one.pid}")]
            others = [starts[one] for one in candidates if one is not active and one in starts]
            done, _ = await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
            for start in done:
                start.result()
            await active.kill()
            begin = loop.time()
            while await leader(testbed) == before:
                await asyncio.sleep(0.05)
            takeovers.append(loop.time() - begin)
            starts[active] = asyncio.create_task(active.start())

        async def fault() -> None:
            await asyncio.sleep(moments.uniform(0, seconds / kills))
            await found.fault("leader SIGKILL", take_over())

        for number in range(kills):
            share = runs * (number + 1) // kills - runs * number // kills
            await asyncio.gather(work(found, chance, share, seconds / kills), fault())
        await asyncio.gather(*starts.values())
        median = statistics.median(takeovers)
        found.notes.append(
            f"another controller led {median:.1f} s after a kill, {max(takeovers):.1f} s at most"
        )
    require_good(found.report)


async def test_standby_leads_after_a_kill(place, chosen):
    """Slow: a kill over eight runs of real pods."""
    await killed(
        "test_standby_leads_after_a_kill", place, 8, kills=1, seconds=5, seed=chosen(4), concurrency=4
    )


@pytest.mark.campaign
async def test_hundred_kills_of_the_leader(place, chosen):
    await killed(
        "test_hundred_kills_of_the_leader", place, 500, kills=100, seconds=300, seed=chosen(5), concurrency=12
    )
