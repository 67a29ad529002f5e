"""Twenty pushes in quick succession against a real apiserver and a real git server."""

import asyncio
import re
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import pytest

from crds import kinds
from crds.objects import Deployment
from tests.cluster.controller.conftest import FAST, WAIT_SECONDS, ControllerTestbed, controller, settings
from tests.testbed.git_server import GitServer

WINDOW = 6.0


async def all_deployments(testbed):
    return [Deployment(item) for item in (await testbed.kube.list(kinds.DEPLOYMENT)).items]


@pytest.mark.nightly
@pytest.mark.parametrize("kopf", [True, False])
async def test_newest_of_twenty_pushes_wins(kube, tmp_path, kopf):
    config = settings(kube.namespace, kopf=kopf, timing=replace(FAST, coalescing_window=WINDOW))
    with GitServer(tmp_path) as server:
        repository = server.create("crew")
        async with controller(kube, config) as process:
            testbed = ControllerTestbed(kube, config, process)
            await testbed.project(source={"git": {"url": server.url("crew"), "interval": "1h"}})
            shas = []
            for number in range(20):
                shas.append(repository.commit({"main.py": str(number)}, f"Commit {number}"))
                pushed = {"crewyard.dev/pushedAt": str(number)}
                await kube.patch(kinds.PROJECT, "demo", {"metadata": {"annotations": pushed}})
                if number < 4:
                    # The controller cannot report a commit that the next push replaced before a poll.
                    await testbed.until(kinds.PROJECT, "demo", lambda o: shas[-1] in ready(o))
            await testbed.until(
                kinds.PROJECT, "demo", lambda o: o["status"].get("source", {}).get("commit") == shas[-1]
            )
            deployments = await all_deployments(testbed)
            # One immediately, then at most one in each window, however slow the machine is.
            created = sorted(
                datetime.fromisoformat(d.raw["metadata"]["creationTimestamp"]) for d in deployments
            )
            gaps = [(after - before).total_seconds() for before, after in pairwise(created)]
            assert gaps and min(gaps) >= WINDOW - 1, gaps  # times are whole seconds
            assert shas[-1] in {d.spec["gitSha"] for d in deployments}
            # Each polled commit that was not deployed is reported with the commit that superseded it.
            skipped_shas = {sha[:12] for sha in shas[:4]} - {d.spec["gitSha"][:12] for d in deployments}
            assert skipped_shas
            async with asyncio.timeout(WAIT_SECONDS):
                while skipped_shas - set(
                    re.findall(r"[0-9a-f]{12}", messages := await skipped_messages(testbed))
                ):
                    await asyncio.sleep(0.1)
            superseding = set(re.findall(r"not built, superseded by ([0-9a-f]{12})", messages))
            assert superseding and superseding <= {d.spec["gitSha"][:12] for d in deployments}


def ready(project):
    return "".join(c["message"] for c in project["status"]["conditions"] if c["type"] == "Ready")


async def skipped_messages(testbed):
    listing = await testbed.kube.list(kinds.EVENT, fields="involvedObject.name=demo,reason=CommitsSkipped")
    return " ".join(event["message"] for event in listing.items)


async def test_queued_build_is_superseded_by_a_newer_commit(kube, tmp_path):
    config = settings(kube.namespace, max_builds=1)
    with GitServer(tmp_path) as server:
        repository = server.create("crew")
        async with controller(kube, config) as process:
            testbed = ControllerTestbed(kube, config, process)
            await testbed.project("busy")
            # Another build has the only slot.
            await kube.create(kinds.DEPLOYMENT, upload("dep-busy"))
            busy = {"status": {"phase": "Building", "buildPod": "dep-busy-a1"}}
            await kube.patch(kinds.DEPLOYMENT, "dep-busy", busy, "status")
            await testbed.project(source={"git": {"url": server.url("crew")}})
            first = await wait_deployment(testbed, repository.commit({"main.py": "1"}, "One"))
            await testbed.until(kinds.DEPLOYMENT, first, lambda o: o["status"].get("order"))
            second = await wait_deployment(testbed, repository.commit({"main.py": "2"}, "Two"))
            ended = Deployment(
                await testbed.until(kinds.DEPLOYMENT, first, lambda o: o["status"]["phase"] == "Failed")
            )
            assert ended.error["reason"] == "Superseded" and second in ended.error["message"]
            assert "buildPod" not in ended.status
            # The branch returns to that commit: it is built again.
            repository.reset(ended.spec["gitSha"])
            await testbed.until(
                kinds.PROJECT, "demo", lambda o: o["status"]["source"]["commit"] == ended.spec["gitSha"]
            )
            assert sorted(d.spec.get("attempt", 0) for d in await all_deployments(testbed)) == [0, 1, 1, 2]


def upload(name):
    spec = {"project": "busy", "source": {"archive": {"upload": "upl_1"}}}
    return {"metadata": {"name": name}, "spec": spec}


async def wait_deployment(testbed, sha):
    """Return the name of the Deployment of a commit once it exists."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            for deployment in await all_deployments(testbed):
                if deployment.spec.get("gitSha") == sha:
                    return deployment.name
            await asyncio.sleep(0.05)
