"""Two controllers with leader election: the standby leads after each kill; no run starts twice."""

import asyncio
import random

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
    """Kill the leader `kills` times while runs are created, each time once the standby leads; restart it."""
    async with (
        open_testbed(place, concurrency=concurrency, settings=ELECTION) as testbed,
        campaign(name, testbed, concurrency, seed) as found,
    ):
        found.end_seconds = 300 + 3 * runs
        chance = random.Random(seed)
        active, standby = testbed.controller, testbed.add_controller()
        await standby.start()
        takeovers = []
        loop = asyncio.get_running_loop()

        async def take_over() -> None:
            nonlocal active, standby
            before = await leader(testbed)
            assert before.endswith(f"-{active.pid}"), before
            await active.kill()
            begin = loop.time()
            while await leader(testbed) == before:
                assert standby.pid is not None, standby.tail()
                await asyncio.sleep(0.05)
            takeovers.append(loop.time() - begin)
            active, standby = standby, active
            await standby.start()

        async def faults() -> None:
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(0, 2 * seconds / kills))
                await found.fault("leader SIGKILL", take_over())

        await asyncio.gather(work(found, chance, runs, seconds), faults())
        print(f"standby led after {sorted(round(taken, 1) for taken in takeovers)} s")
    require_good(found.report)


async def test_standby_leads_after_kills(place, chosen):
    """Slow: three kills over twenty runs of real pods."""
    await killed(
        "test_standby_leads_after_kills", place, 20, kills=3, seconds=15, seed=chosen(4), concurrency=6
    )


@pytest.mark.campaign
async def test_hundred_kills_of_the_leader(place, chosen):
    await killed(
        "test_hundred_kills_of_the_leader", place, 500, kills=100, seconds=300, seed=chosen(5), concurrency=12
    )
