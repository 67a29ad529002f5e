"""Pods that wait for a run (spec.run.warm) or a build (spec.build.warm). Called by tests that let them."""

import asyncio
import contextlib

import aiohttp

from crds.kinds import POD, PROJECT
from crds.names import LABEL_DEPLOYMENT, LABEL_PROJECT, LABEL_WARM_BUILDER
from crds.objects import Pod
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


async def let_builders_wait(testbed: CampaignTestbed, project: str, count: int = 1) -> None:
    """Ask for pods that wait for a build; return when they run. Raises TimeoutError."""
    await testbed.kube.patch(PROJECT, project, {"spec": {"build": {"warm": count}}})
    selector = f"{LABEL_WARM_BUILDER},{LABEL_PROJECT}={project},!{LABEL_DEPLOYMENT}"
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            pods = [Pod(raw) for raw in (await testbed.kube.list(POD, selector)).items]
            if sum(pod.phase == "Running" and not pod.deleting for pod in pods) == count:
                return
            await asyncio.sleep(0.1)
