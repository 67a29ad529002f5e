"""Faults of all kinds in an order drawn from a seed: the same guarantees hold."""

import asyncio
import random
import signal

import pytest

from tests.campaign import schedule
from tests.campaign.campaign import campaign
from tests.campaign.faults.mixture import RUN_KINDS, Mixture, mix
from tests.campaign.receiver import NotificationReceiver
from tests.campaign.reports.report import require_good
from tests.campaign.schedule import ScheduledFault
from tests.campaign.testbed import open_testbed

CONCURRENCY = 6
OTHER = "dep-other"
KINDS = (
    "controller SIGKILL",
    "controller SIGSTOP",
    "API SIGKILL",
    "API SIGSTOP",
    "API SIGTERM",
    "both SIGKILL",
    *RUN_KINDS,
)


class ProcessMixture(Mixture):
    """Faults of the test bed's own processes."""

    async def controller_sigkill(self, fault: ScheduledFault) -> None:
        await self.testbed.controller.kill()
        await asyncio.sleep(fault.seconds)
        await self.testbed.controller.start(ready=False)

    async def api_sigkill(self, fault: ScheduledFault) -> None:
        await self.testbed.api.kill()
        await asyncio.sleep(fault.seconds)
        await self.testbed.api.start()

    async def both_sigkill(self, fault: ScheduledFault) -> None:
        await asyncio.gather(self.controller_sigkill(fault), self.api_sigkill(fault))

    async def controller_sigstop(self, fault: ScheduledFault) -> None:
        self.testbed.controller.stop()
        await asyncio.sleep(fault.seconds)
        self.testbed.controller.cont()

    async def api_sigstop(self, fault: ScheduledFault) -> None:
        self.testbed.api.stop()
        await asyncio.sleep(fault.seconds)
        self.testbed.api.cont()

    async def api_sigterm(self, fault: ScheduledFault) -> None:
        await self.testbed.api.restart(signal.SIGTERM)


async def mixed(name: str, place, each: int, seconds: float, runs: int, seed: int) -> None:
    """`each` faults of every kind over `seconds`, during `runs` runs."""
    faults = schedule.draw(seed, dict.fromkeys(KINDS, each), seconds)
    print(schedule.text(seed, faults, name))
    async with open_testbed(place, concurrency=CONCURRENCY, start=False) as testbed:
        await testbed.api.start()
        async with NotificationReceiver(testbed.host).listening() as receiver:
            await testbed.create_project(notifications=[await receiver.create_secret(testbed)])
            await testbed.deploy(OTHER)
            await testbed.controller.start()
            await testbed.wait_active(OTHER)
            async with campaign(name, testbed, CONCURRENCY, seed) as found:
                found.receiver = receiver
                mixture = ProcessMixture(found, random.Random(seed + 1))
                await mix(found, mixture, faults, seconds, runs, OTHER, testbed.controller.ready)
    require_good(found.report)


async def test_mixed_faults(place, chosen):
    """Slow: eight faults, each with a recovery."""
    await mixed("test_mixed_faults", place, each=1, seconds=12, runs=16, seed=chosen(5))


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(10))
async def test_long_mixed_faults(place, chosen, number):
    if number and schedule.requested_seed():
        pytest.skip("one number is one mixture")
    await mixed("test_long_mixed_faults", place, each=4, seconds=120, runs=150, seed=chosen(0))
