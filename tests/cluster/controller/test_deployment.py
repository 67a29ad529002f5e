"""Builds against a real kubelet. The image of our containers here holds no `build`, so that pods break."""

import asyncio

from crds import kinds
from crds.objects import Pod
from tests.cluster.controller.conftest import condition

SOURCE = {"archive": {"upload": "upl_1"}}


async def create(yard, name, project="demo"):
    spec = {"project": project, "source": SOURCE}
    await yard.kube.create(kinds.DEPLOYMENT, {"metadata": {"name": name}, "spec": spec})


async def test_a_pod_that_breaks_is_made_again_three_times_and_then_the_build_fails(yard):
    await yard.project()
    await create(yard, "dep-a")
    found = await yard.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"]["phase"] == "Failed", 90)
    error = found["status"]["error"]
    assert error["reason"] == "BuildFailed"
    assert "after 4 attempts" in error["message"]
    assert "No module named build" in error["log"]
    assert condition(found, "Built") == ("False", "BuildFailed")
    assert condition(found, "Stalled") == ("True", "BuildFailed")
    pods = [Pod(raw).name for raw in (await yard.kube.list(kinds.POD)).items]
    assert sorted(pods) == ["dep-a-a1", "dep-a-a2", "dep-a-a3", "dep-a-a4"]


async def test_a_build_without_its_project_waits_and_begins_when_the_project_is_there(yard):
    await create(yard, "dep-a")
    await yard.until(
        kinds.DEPLOYMENT, "dep-a", lambda o: condition(o, "Ready") == ("Unknown", "ProjectNotFound")
    )
    project = await yard.project()
    found = await yard.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod"))
    assert found["status"]["buildPod"] == "dep-a-a1"
    found = await yard.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["metadata"].get("ownerReferences"))
    assert found["metadata"]["ownerReferences"][0]["uid"] == project.uid


async def test_a_second_build_of_a_project_waits_for_its_turn(yard):
    await yard.project()
    await create(yard, "dep-a")
    await yard.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod"))
    await create(yard, "dep-b")
    waiting = await yard.until(
        kinds.DEPLOYMENT, "dep-b", lambda o: condition(o, "Ready") == ("Unknown", "Queued")
    )
    assert waiting["status"]["phase"] == "Pending"
    await yard.built("dep-a")
    await yard.until(kinds.DEPLOYMENT, "dep-b", lambda o: o["status"].get("buildPod"))


async def test_a_deployment_takes_its_pods_with_it(yard):
    await yard.project()
    await create(yard, "dep-a")
    await yard.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod"))
    await yard.kube.delete(kinds.DEPLOYMENT, "dep-a")
    async with asyncio.timeout(60):
        while (await yard.kube.list(kinds.POD)).items:
            await asyncio.sleep(0.2)
