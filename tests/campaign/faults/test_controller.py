"""The controller is killed, halted and doubled while runs go by: none is lost, none starts twice."""

import asyncio
import random
import signal

import pytest

from tests.campaign import schedule
from tests.campaign.campaign import Campaign, campaign
from tests.campaign.reports.report import require_good
from tests.campaign.testbed import open_testbed
from tests.campaign.workload import draw

CONCURRENCY = 6


async def work(found: Campaign, chance: random.Random, runs: int, seconds: float) -> None:
    """Create runs over some seconds, half of them by POST and half by kubectl."""
    doors = [("post", "apply")[number % 2] for number in range(runs)]
    for door in doors[: runs // 5]:
        await _one(found, chance, door)
    pause = seconds / runs
    for door in doors[runs // 5 :]:
        await _one(found, chance, door)
        await asyncio.sleep(chance.uniform(0, 2 * pause))


async def _one(found: Campaign, chance: random.Random, door: str) -> None:
    script = draw(chance)
    if door == "post":
        await found.work.post(script)
    else:
        await found.work.apply([script])


async def kills(found: Campaign, faults: tuple[schedule.ScheduledFault, ...]) -> None:
    """Each fault at its moment: a kill, and a start a moment later."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for fault in faults:
        await asyncio.sleep(max(0.0, begun + fault.at - loop.time()))
        await found.fault(fault.kind, _kill(found, fault))


async def _kill(found: Campaign, fault: schedule.ScheduledFault) -> None:
    await found.testbed.controller.kill()
    await asyncio.sleep(fault.seconds)
    # The next kill may come before it is ready: that, too, happens to machines.
    await found.testbed.controller.start(ready=False)


async def killed(
    name: str, place, runs: int, count: int, seconds: float, seed: int, concurrency: int = CONCURRENCY
) -> None:
    """`count` kills over `seconds`, while `runs` runs are asked for."""
    faults = schedule.draw(seed, {"controller SIGKILL": count}, seconds, longest=1.0)
    print(schedule.text(seed, faults, name))
    async with (
        open_testbed(place, concurrency=concurrency) as testbed,
        campaign(name, testbed, concurrency, seed) as found,
    ):
        found.end_seconds = 300 + 3 * runs
        chance = random.Random(seed)
        await asyncio.gather(work(found, chance, runs, seconds), kills(found, faults))
        await testbed.controller.ready()
    require_good(found.report)


@pytest.mark.nightly
async def test_controller_kills(place, chosen):
    """Slow: ten kills over 50 runs."""
    await killed("test_controller_kills", place, runs=50, count=10, seconds=25, seed=chosen(1))


@pytest.mark.campaign
async def test_hundred_controller_kills(place, chosen):
    await killed(
        "test_hundred_controller_kills",
        place,
        runs=500,
        count=100,
        seconds=300,
        seed=chosen(0),
        concurrency=12,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)])
async def test_controller_exits_after_sigterm(place, number):
    """Slow: a test bed with an API server and a controller starts and ends."""
    async with open_testbed(place, concurrency=CONCURRENCY) as testbed:
        await testbed.controller.kill(number)
        assert testbed.controller.exit_code == 0, testbed.controller.tail()


@pytest.mark.nightly
async def test_two_controllers(place, chosen):
    """Slow: twenty runs of real pods."""
    seed = chosen(2)
    async with (
        open_testbed(place, concurrency=CONCURRENCY) as testbed,
        campaign("test_two_controllers", testbed, CONCURRENCY, seed) as found,
    ):
        other = testbed.add_controller()
        await found.fault("second controller", other.start())
        await work(found, random.Random(seed), 20, 5)
    require_good(found.report)


@pytest.mark.campaign
async def test_halted_controller_resumes_beside_another(place, chosen):
    """As on a node that hangs for a minute: its successor works, then both do."""
    seed = chosen(3)
    async with (
        open_testbed(place, concurrency=CONCURRENCY) as testbed,
        campaign("test_halted_controller_resumes_beside_another", testbed, CONCURRENCY, seed) as found,
    ):
        chance = random.Random(seed)
        other = testbed.add_controller()

        async def halt() -> None:
            await asyncio.sleep(3)
            testbed.controller.stop()
            await other.start()
            await asyncio.sleep(60)
            testbed.controller.cont()

        await asyncio.gather(found.fault("controller SIGSTOP", halt()), work(found, chance, 100, 90))
    require_good(found.report)
