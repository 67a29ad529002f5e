"""Faults around a controller: downtime, two controllers, strict pod security."""

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from controller.deployment import pod as build_pod
from controller.deployment.build_result import DependenciesMissing
from controller.process import ControllerProcess
from controller.run import pod as run_pod
from controller.runtime.resync import StateRolledBack
from crds import kinds
from crds import names as names_of
from crds.objects import Pod, Run
from kube.client import KubeClient
from tests.cluster.controller.conftest import ControllerTestbed, controller, settings

NO_IMAGE = "registry.crewyard.internal:5000/library/none:1"


async def test_two_controllers_create_one_pod_per_run(kube):
    # The wait for the missing image outlasts the recording of eight pods.
    config = settings(kube.namespace)
    async with AsyncExitStack() as stack:
        # Two Kopf operators in one process would cancel each other's tasks.
        for kopf in (True, False):
            await stack.enter_async_context(controller(kube, replace(config, kopf=kopf)))
        testbed = ControllerTestbed(kube, config)
        await testbed.project(plan="pro")
        await testbed.deployment("dep-a", image=NO_IMAGE)
        await testbed.wait_active("dep-a")
        names = [f"run-{index}" for index in range(8)]
        await asyncio.gather(*(testbed.run(name, project="demo") for name in names))
        uids = {}
        for name in names:
            found = await testbed.until(kinds.RUN, name, lambda o: o["status"].get("pod"))
            uids[name] = found["status"]["pod"]["uid"]
        # A build pod may exist from before the test wrote the finished build.
        selector = f"{names_of.LABEL_COMPONENT}={names_of.COMPONENT_RUN}"
        pods = {pod.name: pod.uid for pod in map(Pod, (await kube.list(kinds.POD, selector)).items)}
        assert pods == uids
        for name in names:
            await testbed.claim(name)
            await testbed.report(name, "succeeded")
        for name in names:
            assert (await testbed.wait_ended(name)).phase == "Succeeded"
        orders = [d["status"].get("order") for d in (await kube.list(kinds.DEPLOYMENT)).items]
        assert len(orders) == len(set(orders))


async def test_controller_catches_up_after_downtime(kube):
    config = settings(kube.namespace)
    testbed = ControllerTestbed(kube, config)
    async with controller(kube, config):
        await testbed.project()
        await testbed.deployment("dep-a", image=NO_IMAGE)
        await testbed.wait_active("dep-a")
        for name in ("run-0", "run-1", "run-2"):
            await testbed.run(name, project="demo")
        for name in ("run-0", "run-1"):
            await testbed.claim(name)
            await testbed.until(kinds.RUN, name, lambda o: o["status"]["phase"] == "Running")
    await testbed.report("run-0", "failed", reason="CrewError", message="ValueError: no")
    await kube.delete(kinds.POD, "run-1", grace_seconds=0)
    await testbed.run("run-3", project="demo")
    async with controller(kube, config):
        failed_run = await testbed.wait_ended("run-0")
        assert (failed_run.error["reason"], failed_run.error["message"]) == ("CrewError", "ValueError: no")
        assert (await testbed.wait_ended("run-1")).error["reason"] == "PodDeleted"
        for name in ("run-2", "run-3"):
            await testbed.until(kinds.RUN, name, lambda o: o["status"].get("pod"))


async def test_deleted_run_frees_its_slot(testbed):
    await testbed.project()
    await testbed.deployment("dep-a", image=NO_IMAGE)
    for name in ("run-0", "run-1", "run-2"):
        await testbed.run(name, deployment="dep-a")
    for name in ("run-0", "run-1"):
        await testbed.until(kinds.RUN, name, lambda o: o["status"].get("pod"))
    await testbed.kube.delete(kinds.RUN, "run-0")
    await testbed.until(kinds.RUN, "run-2", lambda o: o["status"].get("pod"))


async def test_run_waits_while_another_pod_has_its_name(testbed):
    await testbed.project()
    await testbed.deployment("dep-a", image=NO_IMAGE)
    foreign = {
        "metadata": {"name": "run-a"},
        "spec": {"containers": [{"name": "c", "image": NO_IMAGE}], "restartPolicy": "Never"},
    }
    await testbed.kube.create(kinds.POD, foreign)
    await testbed.run("run-a", deployment="dep-a")
    await testbed.settle()
    assert "pod" not in (await testbed.kube.get(kinds.RUN, "run-a"))["status"]
    await testbed.kube.delete(kinds.POD, "run-a", grace_seconds=0)
    found = Run(await testbed.until(kinds.RUN, "run-a", lambda o: o["status"].get("pod")))
    assert Pod(await testbed.kube.get(kinds.POD, "run-a")).owner_uids == {found.uid}


async def test_pods_satisfy_restricted_and_kaniko_baseline(kube):
    config = settings(kube.namespace, kopf=False)
    testbed = ControllerTestbed(kube, config)
    project = await testbed.project()
    deployment = await testbed.deployment("dep-a")
    run = await testbed.run("run-a", project="demo")
    now = time.time()
    restricted = [
        run_pod.build(run, project, deployment, frozenset(), config, now),
        build_pod.assemble(deployment, project, "dep-a-a1", 1, config, now),
    ]
    missing = DependenciesMissing("key", "image:x")
    baseline = build_pod.dependencies(deployment, project, "dep-a-d1", 2, missing, config, now)
    path = kinds.POD.path(kube.namespace)

    async def dry_run(body):
        body_with_kind = {"apiVersion": "v1", "kind": "Pod", **body}
        await kube.call("POST", path, {"dryRun": "All"}, body_with_kind)

    await dry_run(baseline)
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await kube.call(
        "PATCH",
        f"/api/v1/namespaces/{kube.namespace}",
        body=label,
        content_type="application/merge-patch+json",
    )
    for body in restricted:
        await dry_run(body)


async def test_deeply_nested_input_delays_no_other_run(testbed):
    await testbed.project()
    deep: dict[str, object] = {}
    for _ in range(3000):
        deep = {"a": deep}
    await testbed.run("run-deep", deployment="dep-none", input=deep)
    await testbed.run("run-other", deployment="dep-none")
    for name in ("run-deep", "run-other"):
        assert (await testbed.wait_ended(name)).error["reason"] == "DeploymentNotFound"


async def test_cluster_rollback_stops_the_controller(kube):
    config = settings(kube.namespace)
    testbed = ControllerTestbed(kube, config)
    project = await testbed.project()
    own_client = await KubeClient.connect(kube.namespace)
    process, stop = ControllerProcess(own_client, config), asyncio.Event()
    work = asyncio.create_task(process.run(stop))
    try:
        while process.own.resync.last is None:
            await asyncio.sleep(0.05)
        newer = {**project.raw, "metadata": {**project.metadata, "resourceVersion": str(10**12)}}
        process.own.cache.put(kinds.PROJECT, newer)
        with pytest.raises(StateRolledBack):
            await asyncio.wait_for(work, 300)
    finally:
        stop.set()
        await asyncio.gather(work, return_exceptions=True)
        await own_client.close()
