"""An installation of two replicas with PostgreSQL, S3 and Redis, each killed in an order drawn from a seed.

The same guarantees hold as for one replica. Requires `make up HA=1`.
"""

import asyncio
import random
import statistics

import pytest

from dev.embedded import replicas
from tests.campaign import schedule
from tests.campaign.campaign import Campaign, campaign
from tests.campaign.faults.mixture import RUN_KINDS, Mixture, mix
from tests.campaign.node.cluster_node import ClusterNode
from tests.campaign.receiver import NotificationReceiver
from tests.campaign.replicas.installation import CONCURRENCY, open_installation
from tests.campaign.replicas.service_pods import ServicePods
from tests.campaign.reports.report import require_good
from tests.campaign.schedule import ScheduledFault

KINDS = (
    "API pod SIGKILL",
    "leader SIGKILL",
    "both SIGKILL",
    "PostgreSQL SIGKILL",
    "S3 server SIGKILL",
    "Redis SIGKILL",
    *RUN_KINDS,
)


class ReplicaMixture(Mixture):
    """Faults of the replicas' pods, and of the servers that they share."""

    def __init__(
        self, found: Campaign, chance: random.Random, node: ClusterNode, service: ServicePods
    ) -> None:
        super().__init__(found, chance)
        self.node, self.service = node, service

    async def api_pod_sigkill(self, fault: ScheduledFault) -> None:
        await self.service.kill_api(self.chance)

    async def leader_sigkill(self, fault: ScheduledFault) -> None:
        await self.service.kill_leader()

    async def both_sigkill(self, fault: ScheduledFault) -> None:
        await asyncio.gather(self.service.kill_api(self.chance), self.service.kill_leader())

    async def postgresql_sigkill(self, fault: ScheduledFault) -> None:
        await self._restart("postgresql", fault.seconds)

    async def s3_server_sigkill(self, fault: ScheduledFault) -> None:
        await self._restart("object-store", fault.seconds)

    async def redis_sigkill(self, fault: ScheduledFault) -> None:
        await self._restart("redis", fault.seconds)

    async def _restart(self, name: str, down: float) -> None:
        await asyncio.to_thread(self.node.crash, name)
        await asyncio.sleep(down)
        await asyncio.to_thread(self.node.start, name)


@pytest.fixture
def node():
    """The node with the replicas' servers, whole again behind the test."""
    found = ClusterNode.open()
    if not replicas.enabled(found.settings):
        pytest.skip("the service has one replica: run `make up HA=1` first")
    yield found
    found.mend()
    found.ready()


async def mixed(name: str, place, node: ClusterNode, each: int, seconds: float, runs: int, seed: int) -> None:
    """`each` faults of every kind over `seconds`, during `runs` runs."""
    faults = schedule.draw(seed, dict.fromkeys(KINDS, each), seconds)
    print(schedule.text(seed, faults, name))
    async with NotificationReceiver(node.address).listening() as receiver:

        async def notifications(testbed):
            return [await receiver.create_secret(testbed)]

        async with open_installation(place, node.settings, notifications) as (testbed, other):
            service = await ServicePods.connect(testbed.kube)
            try:
                async with campaign(name, testbed, CONCURRENCY, seed) as found:
                    found.receiver = receiver
                    found.end_seconds = 300 + 3 * runs
                    mixture = ReplicaMixture(found, random.Random(seed + 1), node, service)

                    async def ready() -> None:
                        await asyncio.to_thread(node.ready)

                    await mix(found, mixture, faults, seconds, runs, other, ready)
                    median, longest = statistics.median(service.takeovers), max(service.takeovers)
                    found.notes.append(
                        f"another controller led {median:.1f} s after a kill, {longest:.1f} s at most"
                    )
            finally:
                await service.close()
    require_good(found.report)


@pytest.mark.campaign
@pytest.mark.alone
async def test_one_fault_of_each_kind_hits_replicas(place, node, chosen):
    await mixed(
        "test_one_fault_of_each_kind_hits_replicas", place, node, each=1, seconds=60, runs=40, seed=chosen(9)
    )


@pytest.mark.campaign
@pytest.mark.alone
async def test_mixed_faults_hit_replicas(place, node, chosen):
    await mixed("test_mixed_faults_hit_replicas", place, node, each=8, seconds=480, runs=300, seed=chosen(0))
