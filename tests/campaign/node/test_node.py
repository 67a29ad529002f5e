"""Faults of the dev cluster below Runs and Jobs: each starts once at most, and all end.

A run may fail with an infrastructure reason; a Job may fail too.
"""

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable

import pytest

from tests.campaign.campaign import Campaign, campaign
from tests.campaign.node.cluster_node import ClusterNode
from tests.campaign.reports.report import require_good
from tests.campaign.testbed import open_testbed
from tests.campaign.workload import draw

pytestmark = [pytest.mark.alone, pytest.mark.nightly]

CONCURRENCY = 6
Doing = Callable[[ClusterNode, Campaign], Awaitable[None]]


@pytest.fixture
def node():
    """The node, whole again behind the test."""
    found = ClusterNode.open()
    yield found
    found.mend()
    found.ready()


async def work(found: Campaign, chance: random.Random, count: int, seconds: float) -> None:
    """Create Runs by API and kubectl, and as many Jobs, over some seconds; retry while a server is away."""
    for number in range(count):
        script = {**draw(chance, most_seconds=6), "exit": "returns"}
        if number % 2:
            await found.work.apply([script])
        else:
            await found.work.post(script)
        await found.jobs.job(script)
        await asyncio.sleep(chance.uniform(0, 2 * seconds / count))


async def through(
    name: str,
    node: ClusterNode,
    place,
    seed: int,
    count: int,
    seconds: float,
    doing: Doing,
    rewound: bool = False,
) -> None:
    """The work, with the faults in the middle of it."""
    async with (
        open_testbed(place, concurrency=CONCURRENCY) as testbed,
        campaign(name, testbed, CONCURRENCY, seed, tolerant=True, rewound=rewound) as found,
    ):

        async def inject() -> None:
            await asyncio.sleep(seconds / 4)
            await doing(node, found)

        await asyncio.gather(work(found, random.Random(seed), count, seconds), inject())
        await asyncio.to_thread(node.ready)
    require_good(found.report)


async def restart(node: ClusterNode, found: Campaign, name: str, down: float) -> None:
    """One program is killed and away for some seconds."""

    async def doing() -> None:
        await asyncio.to_thread(node.kill, name)
        await asyncio.sleep(down)
        await asyncio.to_thread(node.start, name)

    await found.fault(f"{name} SIGKILL", doing())


async def halt(node: ClusterNode, found: Campaign, name: str, seconds: float) -> None:
    """One program hangs for some seconds."""

    async def doing() -> None:
        node.send(name, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            node.send(name, signal.SIGCONT)

    await found.fault(f"{name} SIGSTOP", doing())


async def test_component_restarts(node, place, chosen):
    """Slow: three restarts of the node's programs, each with a recovery."""

    async def doing(node: ClusterNode, found: Campaign) -> None:
        for name in ("kube-apiserver", "etcd", "containerd"):
            await restart(node, found, name, 1.0)
            await asyncio.sleep(2)

    await through("test_component_restarts", node, place, chosen(6), 12, 15, doing)


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["kube-apiserver", "etcd", "containerd", "kubelet"])
async def test_component_kills(node, place, chosen, name):
    async def doing(node: ClusterNode, found: Campaign) -> None:
        chance = random.Random(found.seed)
        for _ in range(5):
            await restart(node, found, name, chance.uniform(0, 10))
            await asyncio.sleep(chance.uniform(1, 8))

    await through(f"test_component_kills[{name}]", node, place, chosen(0), 60, 60, doing)


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["kube-apiserver", "etcd", "containerd", "kubelet"])
async def test_component_halts(node, place, chosen, name):
    async def doing(node: ClusterNode, found: Campaign) -> None:
        for seconds in (5, 20, 60):
            await halt(node, found, name, seconds)
            await asyncio.sleep(5)

    await through(f"test_component_halts[{name}]", node, place, chosen(0), 60, 90, doing)


@pytest.mark.campaign
async def test_etcd_is_restored_from_an_older_copy(node, place, chosen, tmp_path):
    """etcd comes back as it was some seconds before: what started since then is not started again."""

    newest = 0

    async def doing(node: ClusterNode, found: Campaign) -> None:
        nonlocal newest
        await asyncio.to_thread(node.copy_store, tmp_path / "etcd")
        await asyncio.sleep(8)

        async def back() -> None:
            nonlocal newest
            # A restore of etcd requires a restart of its readers.
            await asyncio.gather(found.testbed.api.kill(), found.testbed.controller.kill())
            newest = await asyncio.to_thread(node.version)
            await asyncio.to_thread(node.set_back, tmp_path / "etcd")
            await found.testbed.api.start()
            await found.testbed.controller.start(ready=False)

        await found.fault("etcd set back", back())

    try:
        await through(
            "test_etcd_is_restored_from_an_older_copy", node, place, chosen(7), 40, 40, doing, rewound=True
        )
    finally:
        # For other services of this cluster: none was restarted.
        await asyncio.to_thread(node.catch_up, newest)


@pytest.mark.campaign
async def test_node_reboots(node, place, chosen):
    async def doing(node: ClusterNode, found: Campaign) -> None:
        async def boot() -> None:
            await asyncio.gather(found.testbed.api.kill(), found.testbed.controller.kill())
            await asyncio.to_thread(node.reboot)
            await found.testbed.api.start()
            await found.testbed.controller.start()

        await found.fault("reboot", boot())

    await through("test_node_reboots", node, place, chosen(8), 40, 40, doing)
