"""Creates and deletions below a ResourceQuota: each create succeeds, although both change its status."""

import asyncio

from crds.kinds import PROJECT
from tests.cluster.quotas import QUOTA

WRITERS, ROUNDS = 10, 30


async def test_creates_compete_for_the_status_of_a_quota(kube):
    hard = {"count/projects.crewyard.dev": "1000"}
    await kube.create(QUOTA, {"metadata": {"name": "many"}, "spec": {"hard": hard}})
    async with asyncio.timeout(60):
        while not (await kube.get(QUOTA, "many"))["status"].get("used"):
            await asyncio.sleep(0.1)

    async def write(number: int) -> None:
        for turn in range(ROUNDS):
            name = f"project-{number}-{turn}"
            await kube.create(PROJECT, {"metadata": {"name": name}, "spec": {}})
            if turn % 2:
                await kube.delete(PROJECT, name)

    await asyncio.gather(*(write(number) for number in range(WRITERS)))
    assert len(await kube.names(PROJECT)) == WRITERS * ROUNDS // 2
