"""Scenes with pods that wait for a run: each serves one run, of its deployment, with the newest variables.

Called by the catalogue of seeded bugs.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from crds.kinds import POD
from crds.names import LABEL_DEPLOYMENT, LABEL_RUN, id_of
from crds.objects import Pod
from tests.campaign.bugs.pod_scenes import LONG, started
from tests.campaign.bugs.scenes import BugCaught
from tests.campaign.campaign import Campaign, campaign
from tests.campaign.checks.checker import DOUBLED, Violation
from tests.campaign.testbed import CampaignTestbed, open_testbed
from tests.campaign.warm import let_pods_wait

OTHER = "dep-later"
WAIT_SECONDS = 150.0
STALE = "stale"
"""The kind of violation that only these scenes see: what a run has is older than what it should have."""


async def pod_of(testbed: CampaignTestbed, run: str) -> Pod:
    """Return the run's pod as soon as it has one. Raises TimeoutError."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not (pods := (await testbed.kube.list(POD, f"{LABEL_RUN}={run}")).items):
            await asyncio.sleep(0.1)
    return Pod(pods[0])


@contextlib.asynccontextmanager
async def _warm_campaign(name: str, directory: Path, tree: Path) -> AsyncIterator[Campaign]:
    """A campaign that is over, without its verdict, once a test has caught the bug."""
    with contextlib.suppress(BugCaught):
        async with open_testbed(directory, tree=tree) as testbed, campaign(name, testbed) as found:
            yield found
            if found.more:
                raise BugCaught


def _violations(found: Campaign) -> list[Violation]:
    return found.more or list(found.report.columns[0].violations)


async def two_runs(directory: Path, tree: Path) -> list[Violation]:
    """A second run is asked for while the first one's crew works: it gets another pod."""
    async with _warm_campaign("two_runs", directory, tree) as found:
        await let_pods_wait(found.testbed)
        first = await found.work.post(LONG)
        await started(found.testbed, first)
        pod = await pod_of(found.testbed, first)
        await let_pods_wait(found.testbed)
        second = await found.work.post({})
        if (await pod_of(found.testbed, second)).uid == pod.uid:
            found.more.append(Violation(DOUBLED, second, f"it got the pod of {first}"))
    return _violations(found)


async def changed_variable(directory: Path, tree: Path) -> list[Violation]:
    """A variable changes while a pod waits: the next run has the new value."""
    async with _warm_campaign("changed_variable", directory, tree) as found:
        variable = f"/v1/projects/{found.testbed.project}/env/TIDE"
        await found.testbed.ask("PUT", variable, {"value": "low"})
        await let_pods_wait(found.testbed)
        await found.testbed.ask("PUT", variable, {"value": "high"})
        run = await found.work.post({})
        async with asyncio.timeout(WAIT_SECONDS):
            while (shown := await found.testbed.ask("GET", f"/v1/runs/{id_of(run)}"))["completed_at"] is None:
                await asyncio.sleep(0.1)
        if (tide := shown["output"]["tide"]) != "high":
            found.more.append(Violation(STALE, run, f"TIDE was {tide}, and is high"))
    return _violations(found)


async def older_deployment(directory: Path, tree: Path) -> list[Violation]:
    """A run of a deployment that is not active any more gets a pod of that one."""
    async with _warm_campaign("older_deployment", directory, tree) as found:
        await found.testbed.deploy(OTHER)
        await found.testbed.wait_active(OTHER)
        await let_pods_wait(found.testbed)
        older = found.testbed.deployment
        run = await found.work.post({}, deployment=id_of(older))
        pod = await pod_of(found.testbed, run)
        if pod.labels[LABEL_DEPLOYMENT] != older:
            found.more.append(Violation(STALE, run, f"its pod is of {pod.labels[LABEL_DEPLOYMENT]}"))
    return _violations(found)
