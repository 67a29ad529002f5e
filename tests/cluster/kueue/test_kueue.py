"""Runs and builds in the queues of a real Kueue: quota, preemption, and no run twice.

No node takes the pods, so none ends without the test; the test plays the API server.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from controller.pods.placement import NodePlacement, NodePlacements
from crds import kinds
from crds.objects import Pod, Run
from kube.client import KubeClient
from tests.cluster.controller.conftest import ControllerTestbed, condition, controller, settings
from tests.cluster.kueue.conftest import Kueue

pytestmark = pytest.mark.nightly
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
NOWHERE = {"crewyard.dev/none": "here"}


@pytest.fixture
async def testbed(kube: KubeClient, kueue: Kueue) -> AsyncIterator[ControllerTestbed]:
    """A controller whose pods go through a queue with room for one run."""
    await kueue.queue("50m")
    runs = NodePlacement(node_selector=NOWHERE, labels={QUEUE: "crews"})
    urgent = NodePlacement(labels={PRIORITY: f"{kube.namespace}-urgent"})
    builds = NodePlacement(node_selector=NOWHERE, labels={QUEUE: "crews"})
    config = settings(kube.namespace, placements=NodePlacements(runs, builds, {"enterprise": urgent}))
    async with controller(kube, config) as process:
        testbed = ControllerTestbed(kube, config, process)
        for project, plan in (("demo", "pro"), ("vip", "enterprise")):
            await testbed.project(project, plan=plan)
            await testbed.deployment(f"dep-{project}", project)
            await testbed.wait_active(f"dep-{project}", project)
        yield testbed


async def admitted(testbed: ControllerTestbed, name: str) -> Pod:
    """Wait until Kueue has admitted the pod of a Run."""
    return Pod(await testbed.until(kinds.POD, name, lambda pod: not pod["spec"].get("schedulingGates")))


async def finish(testbed: ControllerTestbed, pod: Pod) -> None:
    """Play the API server and the kubelet: the run claims, reports a result, and its pod ends."""
    await testbed.claim(pod.name, pod.uid)
    await testbed.report(pod.name, "succeeded")
    await testbed.set_pod_status(pod.name, pod.uid, {"phase": "Succeeded"})
    assert (await testbed.wait_ended(pod.name)).phase == "Succeeded"


async def waits_in_queue(testbed: ControllerTestbed, name: str) -> Run:
    """Wait until a Run says that its pod waits for a queue."""
    found = await testbed.until(
        kinds.RUN, name, lambda run: condition(run, "Succeeded") == ("Unknown", "SchedulingGated")
    )
    assert "queue" in found["status"]["conditions"][0]["message"]
    return Run(found)


async def test_run_waits_for_the_quota_of_its_queue(testbed: ControllerTestbed) -> None:
    await testbed.run("run-1", project="demo")
    first = await admitted(testbed, "run-1")
    await testbed.run("run-2", project="demo")
    await waits_in_queue(testbed, "run-2")
    await finish(testbed, first)
    await admitted(testbed, "run-2")


async def test_preempted_run_ends_and_is_not_started_again(testbed: ControllerTestbed) -> None:
    await testbed.run("run-low", project="demo")
    low = await admitted(testbed, "run-low")
    await testbed.claim("run-low", low.uid)
    await testbed.until(kinds.RUN, "run-low", lambda run: run["status"]["phase"] == "Running")
    await testbed.run("run-high", project="vip")
    ended = await testbed.wait_ended("run-low")
    assert (ended.phase, (ended.status["error"] or {})["reason"]) == ("Failed", "Preempted")
    assert "higher priority" in ended.status["error"]["message"]
    await admitted(testbed, "run-high")
    await testbed.settle()
    left = await testbed.kube.get(kinds.POD, "run-low")
    assert left is None or left["metadata"]["uid"] == low.uid


async def test_run_preempted_before_its_claim_is_queued_again(testbed: ControllerTestbed) -> None:
    await testbed.run("run-low", project="demo")
    low = await admitted(testbed, "run-low")
    await testbed.run("run-high", project="vip")
    high = await admitted(testbed, "run-high")
    again = await testbed.until(kinds.POD, "run-low", lambda pod: pod["metadata"]["uid"] != low.uid)
    assert again["spec"]["schedulingGates"]
    run = await waits_in_queue(testbed, "run-low")
    assert not run.ended
    await finish(testbed, high)
    await admitted(testbed, "run-low")


async def test_canceled_run_leaves_the_queue(testbed: ControllerTestbed) -> None:
    await testbed.run("run-1", project="demo")
    await admitted(testbed, "run-1")
    await testbed.run("run-2", project="demo")
    await waits_in_queue(testbed, "run-2")
    await testbed.kube.patch(kinds.RUN, "run-2", {"spec": {"cancel": True}})
    assert (await testbed.wait_ended("run-2")).phase == "Canceled"
    async with asyncio.timeout(60):
        while await testbed.kube.get(kinds.POD, "run-2") is not None:
            await asyncio.sleep(0.1)


async def test_build_waits_for_the_quota_of_its_queue(testbed: ControllerTestbed) -> None:
    await testbed.run("run-1", project="demo")
    await admitted(testbed, "run-1")
    body = {"project": "vip", "source": {"archive": {"upload": "upl_2"}}}
    created = await testbed.kube.create(kinds.DEPLOYMENT, {"metadata": {"name": "dep-new"}, "spec": body})
    found = await testbed.until(
        kinds.DEPLOYMENT, created["metadata"]["name"], lambda o: o["status"].get("buildPod")
    )
    pod = await testbed.until(kinds.POD, found["status"]["buildPod"], lambda _: True)
    assert pod["metadata"]["labels"][QUEUE] == "crews"
    assert pod["spec"]["schedulingGates"]
