"""Pods that wait for a build, against a real apiserver; the test plays the kubelet and the build pod.

No node takes them, so no pod starts, changes or ends without the test.
"""

import asyncio

from controller.pods.placement import NodePlacement, NodePlacements
from crds import kinds, names
from crds.objects import Pod
from tests.cluster.controller.conftest import (
    WAIT_SECONDS,
    ControllerTestbed,
    condition,
    controller,
    report_result,
    settings,
)

NOWHERE = NodePlacements(build=NodePlacement(node_selector={"crewyard.dev/none": "here"}))
SOURCE = {"archive": {"upload": "upl_1"}}


def warm_settings(kube):
    return settings(kube.namespace, placements=NOWHERE, controller_url="http://controller.test:8080")


async def until_waiting(testbed, holds):
    """Return the pods that wait for a build, once `holds`."""
    selector = f"{names.LABEL_WARM_BUILDER},!{names.LABEL_DEPLOYMENT}"
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            pods = [Pod(raw) for raw in (await testbed.kube.list(kinds.POD, selector)).items]
            if holds(found := [pod for pod in pods if not pod.deleting]):
                return found
            await asyncio.sleep(0.05)


async def begin_build(testbed):
    """Give the waiting pod of the Project to a build; return it and the Deployment's uid."""
    await testbed.project(build={"warm": 1})
    (pod,) = await until_waiting(testbed, lambda pods: len(pods) == 1)
    await testbed.start_pod(pod, "assemble")
    return pod, (await deploy(testbed, "dep-a"))["metadata"]["uid"]


async def deploy(testbed, name):
    body = {"metadata": {"name": name}, "spec": {"project": "demo", "source": SOURCE}}
    return await testbed.kube.create(kinds.DEPLOYMENT, body)


def report_built(process, deployment_uid, pod_uid):
    """Play the build pod: it reports its image."""
    image = f"registry.crewyard.internal:5000/{process.config.namespace}/demo@sha256:{'ab' * 32}"
    result = {
        "outcome": "built",
        "image": image,
        "plan": {"framework": "python", "entrypoint": "main:kickoff"},
        "tree": "c" * 64,
        "build_key": "d" * 64,
        "dependencies_key": "e" * 64,
        "dependencies_digest": "sha256:" + "f" * 64,
    }
    report_result(process, "dep-a", deployment_uid, pod_uid, result)


async def test_a_build_takes_the_waiting_pod(kube):
    config = warm_settings(kube)
    async with controller(kube, config) as process:
        testbed = ControllerTestbed(kube, config, process)
        pod, deployment_uid = await begin_build(testbed)
        await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod") == pod.name)
        taken = Pod(await kube.get(kinds.POD, pod.name))
        assert taken.owner_uids == {deployment_uid} and taken.spec["activeDeadlineSeconds"] > 0
        assert await kube.get(kinds.POD, "dep-a-a1") is None
        (following,) = await until_waiting(testbed, lambda pods: len(pods) == 1)
        assert following.uid != pod.uid
        await testbed.kube.patch(kinds.PROJECT, "demo", {"spec": {"build": {"warm": 0}}})
        await until_waiting(testbed, lambda pods: not pods)


async def test_a_controller_that_stops_after_the_binding_loses_nothing(kube):
    """The next one finds the pod by its label, and answers it from its annotation."""
    config = warm_settings(kube)
    testbed = ControllerTestbed(kube, config)
    async with controller(kube, config) as testbed.process:
        pod, deployment_uid = await begin_build(testbed)
        await testbed.until(kinds.POD, pod.name, lambda o: names.LABEL_DEPLOYMENT in Pod(o).labels)
    async with controller(kube, config) as process:
        variables = await process.shared.waiters.wait(kube, pod.name, pod.uid, WAIT_SECONDS)
        assert variables["CREWYARD_DEPLOYMENT"] == "dep-a"
        await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod") == pod.name)
        pods = (await kube.list(kinds.POD, f"{names.LABEL_DEPLOYMENT}=dep-a")).items
        assert [Pod(raw).name for raw in pods] == [pod.name]
        report_built(process, deployment_uid, pod.uid)
        shown = await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("image"))
        assert shown["status"]["buildPod"] == pod.name and condition(shown, "Built") == ("True", "Built")


async def test_a_status_that_conflicts_after_the_binding_loses_no_event(kube, monkeypatch):
    config, changed = warm_settings(kube), []
    async with controller(kube, config) as process:
        testbed = ControllerTestbed(kube, config, process)
        patch = process.own.applier.kube.patch

        async def patch_after_another(kind, name, body, subresource=None):
            if kind == kinds.DEPLOYMENT and (body.get("status") or {}).get("buildPod") and not changed:
                changed.append(await patch(kind, name, {"metadata": {"annotations": {"of": "another"}}}))
            return await patch(kind, name, body, subresource)

        monkeypatch.setattr(process.own.applier.kube, "patch", patch_after_another)
        pod, _ = await begin_build(testbed)
        await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod") == pod.name)
        await testbed.settle()
        async with asyncio.timeout(120):  # the recorder writes in the background
            while "Building" not in {one["reason"] for one in (await kube.list(kinds.EVENT)).items}:
                await asyncio.sleep(0.05)
        assert changed


async def test_a_pod_that_is_lost_after_the_binding_is_replaced_by_a_cold_one(kube):
    config = warm_settings(kube)
    async with controller(kube, config) as process:
        testbed = ControllerTestbed(kube, config, process)
        pod, _ = await begin_build(testbed)
        await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod") == pod.name)
        await kube.delete(kinds.POD, pod.name, pod.uid, grace_seconds=0)
        await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod") == "dep-a-a2")


async def test_two_controllers_bind_each_pod_once(kube):
    """Both see the same builds and pods: one write binds a pod."""
    config = warm_settings(kube)
    async with controller(kube, config) as first:
        testbed = ControllerTestbed(kube, config, first)
        await testbed.project(build={"warm": 2})
        pods = await until_waiting(testbed, lambda pods: len(pods) == 2)
        # From here on: two that start together may both start all pods, and then delete the surplus.
        async with controller(kube, config) as second:
            for pod in pods:
                await testbed.start_pod(pod, "assemble", first, second)
            deployment_uid = (await deploy(testbed, "dep-a"))["metadata"]["uid"]
            shown = await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod"))
            name = shown["status"]["buildPod"]
            owned = [
                Pod(raw) for raw in (await kube.list(kinds.POD, f"{names.LABEL_DEPLOYMENT}=dep-a")).items
            ]
            report_built(first, deployment_uid, next(pod.uid for pod in owned if pod.name == name))
            report_built(second, deployment_uid, next(pod.uid for pod in owned if pod.name == name))
            shown = await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("image"))
            assert shown["status"]["buildPod"] == name
            # One that another controller bound for the same build ends by its clean-up, and serves no other.
            assert all(pod.owner_uids == {deployment_uid} for pod in owned)
