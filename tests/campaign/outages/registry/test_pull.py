"""The registry is away while a node pulls the image of a run."""

import asyncio

import pytest

from tests.campaign.outages.network.link import open_link
from tests.campaign.outages.outage import outage
from tests.campaign.outages.registry.images import registry_address
from tests.campaign.reports.report import require_good
from tests.campaign.testbed import open_testbed

CONCURRENCY = 6


@pytest.mark.campaign
async def test_registry_is_unavailable_during_a_pull(place):
    """A node that must pull an image waits for the registry, and the run begins once."""
    name = "test_registry_is_unavailable_during_a_pull"
    host, port = registry_address()
    other = "dep-pulled"
    # The node's own runtime takes no http but of this machine.
    async with (
        open_link(host, port) as link,
        open_testbed(place, concurrency=CONCURRENCY) as testbed,
        outage(name, testbed, CONCURRENCY) as found,
    ):
        await found.store_artifact(1000)
        repository = testbed.image.partition("/")[2]
        testbed.image = f"127.0.0.1:{link.port}/{repository}"
        await testbed.deploy(other)
        await testbed.wait_active(other)
        runs: list[str] = []

        async def during() -> None:
            runs.append(await found.campaign.work.post({"events": 3, "artifact": 1000}))
            await asyncio.sleep(15)
            if any(line.run == runs[0] for line in testbed.ledger.entries()):
                found.add_violation("fault", "the image was there already")

        await found.inject("registry away from a node", link.refusing(), 0, during)
        await found.wait_ended(*runs)
    require_good(found.campaign.report)
