"""Pods that wait for a run (spec.run.warm). Called by the tests that let runs take them."""

import asyncio
import contextlib

import aiohttp

from crds.kinds import PROJECT
from tests.campaign.testbed import CampaignTestbed

WAIT_SECONDS = 150.0


async def let_pods_wait(testbed: CampaignTestbed, count: int = 1) -> None:
    """Ask for pods that wait; return when the controller can give them to runs. Raises TimeoutError."""
    await testbed.kube.patch(PROJECT, testbed.project, {"spec": {"run": {"warm": count}}})
    expected = f'crewyard_warm_pods{{state="running"}} {count:.1f}'
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            # A test may have killed it.
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async with testbed.session.get(f"{testbed.controller.url}/metrics") as answer:
                    if expected in await answer.text():
                        return
            await asyncio.sleep(0.1)
