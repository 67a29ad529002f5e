"""Faults of all kinds in an order drawn from a seed: the same guarantees hold."""

import asyncio
import random
import signal

import pytest

from crds.kinds import POD
from crds.names import id_of
from tests.campaign import schedule
from tests.campaign.campaign import Campaign, campaign
from tests.campaign.checks.checker import ACTIVE, Violation
from tests.campaign.ledger import END
from tests.campaign.pods import kill_runner
from tests.campaign.receiver import NotificationReceiver
from tests.campaign.reports.report import CampaignReport, require_good
from tests.campaign.schedule import ScheduledFault
from tests.campaign.testbed import CampaignTestbed, open_testbed
from tests.campaign.workload import draw

CONCURRENCY = 6
OTHER = "dep-other"
PATIENCE = 180.0


class Mixture:
    """How each kind of fault is done."""

    def __init__(self, found: Campaign, chance: random.Random) -> None:
        self.found, self.testbed, self.chance = found, found.testbed, chance

    async def do(self, fault: ScheduledFault) -> None:
        """One fault, over and healed when this returns."""
        doing = getattr(self, fault.kind.replace(" ", "_").lower())
        await self.found.fault(fault.kind, doing(fault))

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

    async def pod_deleted(self, fault: ScheduledFault) -> None:
        name = self._running()
        pod = await self.testbed.kube.get(POD, name) if name else None
        if name and pod is not None:
            self.found.work.allow(name, "failed:PodDeleted")
            await self.found.read_events(name)
            await self.testbed.kube.delete(POD, name, uid=pod["metadata"]["uid"])

    async def runner_sigkill(self, fault: ScheduledFault) -> None:
        name = self._running()
        pod = await self.testbed.kube.get(POD, name) if name else None
        if name and pod is not None:
            self.found.work.allow(name, "failed:RunnerLost")
            await self.found.read_events(name)
            kill_runner(pod["metadata"]["uid"])

    def _running(self) -> str | None:
        """A run whose crew has started and not ended; none that was chosen before."""
        lines = self.testbed.ledger.entries()
        over = {line.run for line in lines if line.what == END}
        whole = {one.run for one in self.found.work.requested if len(one.ends) == 1}
        names = sorted({line.run for line in lines} & whole - over - self.found.watcher.ended.keys())
        return self.chance.choice(names) if names else None


async def flips(found: Campaign, chance: random.Random, over: asyncio.Event) -> None:
    """One rollback after the other, until `over`: the last that was acknowledged is the one that holds."""
    testbed = found.testbed
    target = OTHER
    while not over.is_set():
        target = testbed.deployment if target == OTHER else OTHER
        await testbed.ask("POST", f"/v1/deployments/{id_of(target)}/rollback", seconds=PATIENCE)
        await asyncio.sleep(chance.uniform(0, 4))
    await asyncio.sleep(1)
    shown = (await testbed.ask("GET", f"/v1/projects/{testbed.project}"))["active_deployment_id"]
    if shown != id_of(target):
        found.more.append(Violation(ACTIVE, "", f"{shown} is active after a rollback to {id_of(target)}"))


KINDS = (
    "controller SIGKILL",
    "controller SIGSTOP",
    "API SIGKILL",
    "API SIGSTOP",
    "API SIGTERM",
    "both SIGKILL",
    "pod deleted",
    "runner SIGKILL",
)


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
            report = await _mixed(name, testbed, receiver, faults, seconds, runs, seed)
    require_good(report)


async def _mixed(
    name: str,
    testbed: CampaignTestbed,
    receiver: NotificationReceiver,
    faults: tuple[ScheduledFault, ...],
    seconds: float,
    runs: int,
    seed: int,
) -> CampaignReport:
    async with campaign(name, testbed, CONCURRENCY, seed) as found:
        chance = random.Random(seed)
        found.receiver = receiver
        mixture = Mixture(found, random.Random(seed + 1))
        loop = asyncio.get_running_loop()
        begun = loop.time()

        async def work() -> None:
            for number in range(runs):
                script = {**draw(chance), "exit": "returns", "questions": 2 if number % 4 == 1 else 0}
                if number % 2:
                    [run] = await found.work.apply([script])
                else:
                    run = await found.work.post(script)
                if script["questions"]:
                    found.answers.follow(run)
                if number % 3 == 0:
                    found.readers.follow(run)
                    uploads.create_task(found.work.upload(chance.randint(1, 1 << 20)))
                await asyncio.sleep(chance.uniform(0, 2 * seconds / runs))

        async def inject() -> None:
            for fault in faults:
                await asyncio.sleep(max(0.0, begun + fault.at - loop.time()))
                await mixture.do(fault)

        over = asyncio.Event()
        flipping = asyncio.create_task(flips(found, random.Random(seed + 2), over))
        async with asyncio.TaskGroup() as uploads:
            await asyncio.gather(work(), inject())
        await testbed.controller.ready()
        over.set()
        await flipping
        found.notes.append(f"{len(found.work.uploads)} archives were stored")
    return found.report


async def test_mixed_faults(place, chosen):
    """Slow: eight faults, each with a recovery."""
    await mixed("test_mixed_faults", place, each=1, seconds=12, runs=16, seed=chosen(5))


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(10))
async def test_long_mixed_faults(place, chosen, number):
    if number and schedule.requested_seed():
        pytest.skip("one number is one mixture")
    await mixed("test_long_mixed_faults", place, each=4, seconds=120, runs=150, seed=chosen(0))
