"""Faults of many kinds in the order of a schedule, during runs with questions, uploads and rollbacks.

    await mix(found, ProcessMixture(found, chance), faults, seconds=120, runs=150, other="dep-other")

Called by the tests of mixed faults; a subclass of `Mixture` has the faults of its installation.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from crds.kinds import POD
from crds.names import id_of
from tests.campaign.campaign import Campaign
from tests.campaign.checks.checker import ACTIVE, Violation
from tests.campaign.ledger import END
from tests.campaign.pods import kill_runner
from tests.campaign.schedule import ScheduledFault
from tests.campaign.workload import draw

PATIENCE_SECONDS = 180.0
RUN_KINDS = ("pod deleted", "runner SIGKILL")


class Mixture:
    """How each kind of fault is done; these are the faults of `RUN_KINDS`, which hit one run."""

    def __init__(self, found: Campaign, chance: random.Random) -> None:
        self.found, self.testbed, self.chance = found, found.testbed, chance

    async def do(self, fault: ScheduledFault) -> None:
        """One fault, over and healed when this returns."""
        doing = getattr(self, fault.kind.replace(" ", "_").lower())
        await self.found.fault(fault.kind, doing(fault))

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


async def _flip(found: Campaign, chance: random.Random, other: str, over: asyncio.Event) -> None:
    """One rollback after the other, until `over`: the last that was acknowledged is the one that holds."""
    testbed = found.testbed
    target = other
    while not over.is_set():
        target = testbed.deployment if target == other else other
        await testbed.ask("POST", f"/v1/deployments/{id_of(target)}/rollback", seconds=PATIENCE_SECONDS)
        await asyncio.sleep(chance.uniform(0, 4))
    await asyncio.sleep(1)
    shown = (await testbed.ask("GET", f"/v1/projects/{testbed.project}"))["active_deployment_id"]
    if shown != id_of(target):
        found.more.append(Violation(ACTIVE, "", f"{shown} is active after a rollback to {id_of(target)}"))


async def mix(
    found: Campaign,
    mixture: Mixture,
    faults: Sequence[ScheduledFault],
    seconds: float,
    runs: int,
    other: str,
    ready: Callable[[], Awaitable[object]],
) -> None:
    """Create `runs` runs over `seconds`, half by POST and half by kubectl, while the faults come.

    `other` is the deployment that is active at the begin; `ready` waits until all is healed.
    """
    assert found.seed is not None
    chance, flips = random.Random(found.seed), random.Random(found.seed + 2)
    loop = asyncio.get_running_loop()
    begun = loop.time()

    async def work() -> None:
        for number in range(runs):
            # While a server is away a caller waits; the next runs then make up for it.
            due = begun + (number + chance.random()) * seconds / runs
            await asyncio.sleep(max(0.0, due - loop.time()))
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

    async def inject() -> None:
        for fault in faults:
            await asyncio.sleep(max(0.0, begun + fault.at - loop.time()))
            await mixture.do(fault)
        found.notes.append(f"{len(found.work.requested)} runs were requested until the last fault was over")

    over = asyncio.Event()
    flipping = asyncio.create_task(_flip(found, flips, other, over))
    async with asyncio.TaskGroup() as uploads:
        await asyncio.gather(work(), inject())
    await ready()
    over.set()
    await flipping
    found.notes.append(f"{len(found.work.uploads)} archives were stored")
