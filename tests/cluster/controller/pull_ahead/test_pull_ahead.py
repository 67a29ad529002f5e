"""The image of a new active deployment on the nodes that have run the project, against a real apiserver.

A run goes to the only node. From then on no node takes the project's pods, so no pull pod starts or ends
without the test, which plays the kubelet.
"""

import asyncio
from datetime import UTC, datetime

import pytest

from controller.pull_ahead.decide import FAILED_EVENT
from controller.pull_ahead.pod import node_of
from controller.runtime.event_map import COMPONENT_PULL
from crds import kinds, names
from crds.objects import Pod, Project
from crds.times import parse_time
from tests.cluster.controller.conftest import (
    WAIT_SECONDS,
    ControllerTestbed,
    both_triggers,
    controller,
    settings,
)
from tests.cluster.quotas import refuse_all

PLAN = {"entrypoint": "main:kickoff", "framework": "python"}
ELSEWHERE = {"nodeSelector": {"crewyard.dev/none": "here"}}


@pytest.fixture
async def testbed(kube, trigger):
    config = settings(kube.namespace, kopf=trigger == "kopf", pull_ahead=True)
    async with controller(kube, config) as process:
        yield ControllerTestbed(kube, config, process)


async def run_once(testbed):
    """Let a run go to the node, and no pod after it; return the node's name."""
    await testbed.project(plan="pro")
    await testbed.deployment("dep-a", plan=PLAN)
    await testbed.wait_active("dep-a")
    await testbed.run("run-a", project="demo")
    found = await testbed.until(kinds.PROJECT, "demo", lambda o: Project(o).run_nodes)
    await testbed.wait_ended("run-a")
    await testbed.kube.patch(kinds.PROJECT, "demo", {"spec": {"pod": ELSEWHERE}})
    (node,) = Project(found).run_nodes
    return node


async def pull_pods(testbed):
    """The pull pods that are not being deleted."""
    selector = f"{names.LABEL_PROJECT}=demo,{names.LABEL_COMPONENT}={COMPONENT_PULL}"
    pods = [Pod(raw) for raw in (await testbed.kube.list(kinds.POD, selector)).items]
    return [pod for pod in pods if not pod.deleting]


async def until_pods(testbed, count):
    async with asyncio.timeout(WAIT_SECONDS):
        while len(pods := await pull_pods(testbed)) != count:
            await asyncio.sleep(0.05)
    return pods


async def activate(testbed, name):
    """Build and activate a deployment; return when its activation was handled."""
    built = await testbed.deployment(name, plan=PLAN)
    await testbed.wait_active(name)
    await testbed.until(kinds.PROJECT, "demo", is_handled)
    return built


def is_handled(project):
    status = project["status"]
    return (status.get("pullAhead") or {}).get("activatedAt") == status["activatedAt"]


async def end(testbed, pod, phase="Succeeded"):
    """Play the kubelet: the pod has ended."""
    await testbed.until(kinds.POD, pod.name, lambda o: o["status"].get("conditions"))
    await testbed.set_pod_status(pod.name, pod.uid, {"phase": phase, "reason": "DeadlineExceeded"})


@both_triggers
async def test_the_node_of_a_run_gets_one_pod_of_the_new_deployment(testbed):
    node = await run_once(testbed)
    built = await activate(testbed, "dep-b")
    (pod,) = await until_pods(testbed, 1)
    assert (node_of(pod), pod.owner_uid(kinds.DEPLOYMENT), pod.node) == (node, built.uid, "")
    assert pod.spec["containers"][0]["image"] == built.image
    await end(testbed, pod)
    await until_pods(testbed, 0)
    await testbed.settle()
    assert await pull_pods(testbed) == []
    # The node stays known.
    assert Project(await testbed.until(kinds.PROJECT, "demo", is_handled)).run_nodes == [node]


async def test_a_rollback_pulls_the_earlier_image_again(testbed):
    await run_once(testbed)
    await activate(testbed, "dep-b")
    (first,) = await until_pods(testbed, 1)
    await activate(testbed, "dep-c")
    (second,) = await until_pods(testbed, 1)
    await testbed.kube.patch(kinds.DEPLOYMENT, "dep-b", {"spec": {"activation": 1}})
    await testbed.wait_active("dep-b")
    await testbed.until(kinds.PROJECT, "demo", is_handled)
    async with asyncio.timeout(WAIT_SECONDS):
        # The first pod of dep-b has the same name, and may take a moment to go.
        while not [pod for pod in await pull_pods(testbed) if pod.name == first.name]:
            await asyncio.sleep(0.05)
    (third,) = await until_pods(testbed, 1)
    assert (third.name, second.name != first.name) == (first.name, True)
    assert third.uid != first.uid


async def test_a_refused_pod_does_not_delay_the_activation(testbed):
    await run_once(testbed)
    await refuse_all(testbed.kube, kinds.POD)
    await activate(testbed, "dep-b")
    assert await pull_pods(testbed) == []
    async with asyncio.timeout(WAIT_SECONDS):
        while not (found := await events(testbed)):
            await asyncio.sleep(0.05)
    assert "exceeded quota" in found[0]["message"]


async def test_a_pod_that_failed_is_an_event_and_is_deleted(testbed):
    node = await run_once(testbed)
    await activate(testbed, "dep-b")
    (pod,) = await until_pods(testbed, 1)
    await end(testbed, pod, "Failed")
    await until_pods(testbed, 0)
    async with asyncio.timeout(WAIT_SECONDS):
        while not (found := await events(testbed)):
            await asyncio.sleep(0.05)
    assert f"dep-b was not pulled ahead to node {node}" in found[0]["message"]


async def events(testbed):
    found = await testbed.kube.list(kinds.EVENT, "", f"reason={FAILED_EVENT}")
    return found.items


async def test_the_next_controller_knows_the_nodes_and_deletes_the_pods(kube):
    config = settings(kube.namespace, pull_ahead=True)
    testbed = ControllerTestbed(kube, config)
    async with controller(kube, config) as testbed.process:
        await run_once(testbed)
    async with controller(kube, config) as testbed.process:
        await activate(testbed, "dep-b")
        (pod,) = await until_pods(testbed, 1)
    await end(testbed, pod)
    async with controller(kube, config) as testbed.process:
        await until_pods(testbed, 0)
        await testbed.settle()
        assert await pull_pods(testbed) == []


@pytest.mark.nightly
async def test_a_node_without_a_place_is_forgotten(testbed):
    """Slow: the scheduler has a minute. What is asked for exists on no node."""
    await run_once(testbed)
    await activate(testbed, "dep-b")
    (pod,) = await until_pods(testbed, 1)
    await testbed.until(kinds.PROJECT, "demo", lambda o: not Project(o).run_nodes)
    await until_pods(testbed, 0)
    created = parse_time(str(pod.metadata["creationTimestamp"]))
    assert (datetime.now(UTC) - created).total_seconds() >= 60


async def test_without_the_setting_nothing_is_recorded(kube):
    config = settings(kube.namespace)
    async with controller(kube, config) as process:
        testbed = ControllerTestbed(kube, config, process)
        await testbed.project(plan="pro")
        await testbed.deployment("dep-a", plan=PLAN)
        await testbed.wait_active("dep-a")
        await testbed.run("run-a", project="demo")
        await testbed.wait_ended("run-a")
        await testbed.deployment("dep-b", plan=PLAN)
        await testbed.wait_active("dep-b")
        await testbed.settle()
        project = await testbed.until(kinds.PROJECT, "demo", lambda _: True)
        assert "pullAhead" not in project["status"] and await pull_pods(testbed) == []
