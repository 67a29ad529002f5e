"""Pods that wait for a run, against a real apiserver; the test plays the kubelet and the API server.

No node takes them, so no pod starts, changes or ends without the test.
"""

import asyncio

import pytest

from controller.run.warm import decide as warm_decide
from crds import kinds, names
from crds.objects import Pod
from tests.cluster.controller.conftest import (
    WAIT_SECONDS,
    ControllerTestbed,
    both_triggers,
    condition,
    container_status,
    controller,
    settings,
)
from tests.cluster.quotas import refuse_all

PLAN = {"entrypoint": "main:kickoff", "framework": "python"}


async def waiting(testbed, project="demo"):
    """The pods of a project that wait for a run."""
    selector = f"{names.LABEL_PROJECT}={project},{names.LABEL_WARM},!{names.LABEL_RUN}"
    pods = [Pod(raw) for raw in (await testbed.kube.list(kinds.POD, selector)).items]
    return {pod.name: pod for pod in pods if not pod.deleting}


async def until_waiting(testbed, holds):
    async with asyncio.timeout(WAIT_SECONDS):
        while not holds(pods := await waiting(testbed)):
            await asyncio.sleep(0.05)
    return pods


async def start(testbed, *pods, processes=()):
    """Play the kubelet: it shows once that a pod runs, and writes no more until the pod ends."""
    for pod in pods:
        await testbed.start_pod(pod, "crew", *processes)


async def bound(testbed, run):
    """The pods that have this run."""
    found = await testbed.kube.list(kinds.POD, f"{names.LABEL_RUN}={run}")
    return [Pod(raw) for raw in found.items]


async def until_bound(testbed, run, pod):
    """The run's pod, which must be this one."""
    taken = await until_pod(testbed, run)
    assert (taken.name, taken.uid) == (pod.name, pod.uid)
    return taken


async def until_pod(testbed, run):
    async with asyncio.timeout(WAIT_SECONDS):
        while not (pods := await bound(testbed, run)):
            await asyncio.sleep(0.02)
    return pods[0]


async def project(testbed, warm=1, plan="pro"):
    await testbed.project(plan=plan, run={"warm": warm}, pod={"nodeSelector": {"crewyard.dev/none": "here"}})
    await testbed.deployment("dep-a", plan=PLAN)
    await testbed.wait_active("dep-a")


@both_triggers
async def test_a_run_takes_a_waiting_pod_and_ends(testbed):
    await project(testbed)
    (pod,) = (await until_waiting(testbed, lambda pods: len(pods) == 1)).values()
    await start(testbed, pod)
    run = await testbed.run("run-a", project="demo")
    taken = await until_bound(testbed, "run-a", pod)
    assert taken.owner_uids == {run.uid}
    assert taken.spec["activeDeadlineSeconds"] > 0
    # Another one takes its place.
    await until_waiting(testbed, lambda pods: len(pods) == 1 and pod.name not in pods)
    await testbed.claim("run-a", pod.uid)
    shown = await testbed.until(kinds.RUN, "run-a", lambda o: o["status"]["phase"] == "Running")
    assert shown["status"]["pod"] == {"name": pod.name, "uid": pod.uid}
    assert shown["status"]["deployment"] == "dep-a"
    await testbed.report("run-a", "succeeded")
    assert (await testbed.wait_ended("run-a")).phase == "Succeeded"
    assert await testbed.kube.get(kinds.POD, "run-a") is None


async def test_the_pod_is_deleted_at_a_cancel(testbed):
    await project(testbed)
    (pod,) = (await until_waiting(testbed, lambda pods: len(pods) == 1)).values()
    await start(testbed, pod)
    await testbed.run("run-a", project="demo")
    await until_bound(testbed, "run-a", pod)
    await testbed.claim("run-a", pod.uid)
    await testbed.kube.patch(kinds.RUN, "run-a", {"spec": {"cancel": True}})
    run = await testbed.wait_ended("run-a")
    assert (run.phase, run.pod) == ("Canceled", {"name": pod.name, "uid": pod.uid})


async def test_a_controller_that_stops_after_the_binding_loses_nothing(kube):
    """The next one finds the pod by its label, and creates no second one."""
    config = settings(kube.namespace)
    testbed = ControllerTestbed(kube, config)
    async with controller(kube, config) as testbed.process:
        await project(testbed)
        (pod,) = (await until_waiting(testbed, lambda pods: len(pods) == 1)).values()
        await start(testbed, pod)
        await testbed.run("run-a", project="demo")
        await until_bound(testbed, "run-a", pod)
    async with controller(kube, config):
        await until_waiting(testbed, lambda pods: len(pods) == 1)
        await testbed.run("run-b", project="demo")
        await until_pod(testbed, "run-b")  # the queue was looked at, with run-a in it
        assert [one.name for one in await bound(testbed, "run-a")] == [pod.name]
    async with controller(kube, config):
        await testbed.claim("run-a", pod.uid)
        await testbed.report("run-a", "succeeded")
        run = await testbed.wait_ended("run-a")
        assert (run.phase, run.pod) == ("Succeeded", {"name": pod.name, "uid": pod.uid})


async def test_two_controllers_bind_each_pod_once(kube):
    """Both see the same runs and pods: no pod has two runs, and no more pods wait than should."""
    config = settings(kube.namespace)
    testbed = ControllerTestbed(kube, config)
    async with controller(kube, config) as first:
        await project(testbed, warm=3)
        pods = await until_waiting(testbed, lambda pods: len(pods) == 3)
        # From here on: two that start together may both start all pods, and then delete the surplus.
        async with controller(kube, config) as second:
            await start(testbed, *pods.values(), processes=(first, second))
            await asyncio.gather(*(testbed.run(f"run-{n}", project="demo") for n in range(5)))
            taken = [await until_pod(testbed, f"run-{n}") for n in range(5)]
            uids = [pod.uid for pod in taken]
            assert len(set(uids)) == 5
            assert len({pod.name for pod in taken} & set(pods)) >= 1
            # A second binding would have moved the pod to its run.
            for number, pod in enumerate(taken):
                assert pod.uid in {one.uid for one in await bound(testbed, f"run-{number}")}
            for number, pod in enumerate(taken):
                await testbed.claim(f"run-{number}", pod.uid)
                await testbed.report(f"run-{number}", "succeeded")
            assert {(await testbed.wait_ended(f"run-{n}")).phase for n in range(5)} == {"Succeeded"}
            await until_waiting(testbed, lambda pods: len(pods) == 3)


@pytest.mark.parametrize("deleted", [True, False])
async def test_a_pod_that_is_lost_between_binding_and_claim_gives_the_run_back(testbed, deleted):
    await project(testbed)
    (pod,) = (await until_waiting(testbed, lambda pods: len(pods) == 1)).values()
    await start(testbed, pod)
    await testbed.run("run-a", project="demo")
    await until_bound(testbed, "run-a", pod)
    if deleted:
        await testbed.kube.delete(kinds.POD, pod.name, pod.uid, grace_seconds=0)
    else:
        await testbed.kube.patch(kinds.PROJECT, "demo", {"spec": {"run": {"warm": 0}}})
        ended = container_status("crew", terminated={"exitCode": 79, "reason": "Error", "message": "{}"})
        await testbed.set_pod_status(pod.name, pod.uid, {"phase": "Failed", "containerStatuses": [ended]})
    async with asyncio.timeout(WAIT_SECONDS):
        while not [one for one in await bound(testbed, "run-a") if one.uid != pod.uid]:
            await asyncio.sleep(0.05)
    (other,) = [one for one in await bound(testbed, "run-a") if one.uid != pod.uid]
    await testbed.claim("run-a", other.uid)
    await testbed.report("run-a", "succeeded")
    assert (await testbed.wait_ended("run-a")).phase == "Succeeded"


async def test_a_pod_is_not_deleted_once_it_has_a_run(testbed, monkeypatch):
    """The pool sees a stale version of it: its delete has a precondition."""
    await project(testbed)
    (pod,) = (await until_waiting(testbed, lambda pods: len(pods) == 1)).values()
    await start(testbed, pod)
    await testbed.run("run-a", project="demo")
    await until_bound(testbed, "run-a", pod)
    stale = warm_decide.decide(warm_decide.WarmPool(0, None, [pod]), [], pod.created, testbed.config)
    for deletion in stale.delete:
        await testbed.process.own.applier.delete(deletion)
    assert [one.deleting for one in await bound(testbed, "run-a")] == [False]


async def test_another_deployment_and_other_variables_replace_the_pods(testbed):
    """Slow: three generations of waiting pods start."""
    await project(testbed)
    first = await until_waiting(testbed, lambda pods: len(pods) == 1)
    await testbed.deployment("dep-b", plan=PLAN)
    await testbed.wait_active("dep-b")
    second = await until_waiting(testbed, lambda pods: len(pods) == 1 and not set(pods) & set(first))
    assert {pod.labels[names.LABEL_DEPLOYMENT] for pod in second.values()} == {"dep-b"}
    (stale,) = second.values()
    await start(testbed, stale)
    secret = {"metadata": {"name": names.env_secret("demo")}, "stringData": {"COLOR": "green"}}
    await testbed.kube.create(kinds.SECRET, secret)
    await testbed.run("run-a", project="demo")
    taken = await until_pod(testbed, "run-a")
    assert taken.name == "run-a"
    await until_waiting(testbed, lambda pods: len(pods) == 1 and stale.name not in pods)


async def test_failing_pods_are_reported_and_do_not_stop_runs(testbed):
    """The image has no runner: each pod ends at once. Slow: a back-off passes."""
    await testbed.project(plan="pro", run={"warm": 2})
    await testbed.deployment("dep-a", plan=PLAN)
    found = await testbed.until(
        kinds.PROJECT, "demo", lambda o: condition(o, "WarmPodsFailing") == ("True", "WarmPodFailed")
    )
    assert found["status"]["warm"]["failures"] >= 1
    await testbed.run("run-a", project="demo")
    assert (await testbed.wait_ended("run-a")).phase == "Failed"
    # Without waiting pods nothing fails.
    await testbed.kube.patch(kinds.PROJECT, "demo", {"spec": {"run": {"warm": 0}}})
    await testbed.until(kinds.PROJECT, "demo", lambda o: condition(o, "WarmPodsFailing") is None)
    await until_waiting(testbed, lambda pods: not pods)


async def test_the_plan_limits_the_waiting_pods_and_they_take_no_slot(testbed):
    await project(testbed, warm=5, plan="free")
    await until_waiting(testbed, lambda pods: len(pods) == 2)
    limited = await testbed.until(kinds.PROJECT, "demo", lambda o: condition(o, "Limited"))
    message = next(c["message"] for c in limited["status"]["conditions"] if c["type"] == "Limited")
    assert "run.warm: 5 is lowered to 2" in message
    for number in range(2):
        await testbed.run(f"run-{number}", project="demo")
    for number in range(2):
        await until_pod(testbed, f"run-{number}")
    assert len(await waiting(testbed)) == 2


async def test_a_refused_pod_is_a_failure_with_a_delay(testbed):
    await refuse_all(testbed.kube, kinds.POD)
    await project(testbed)
    found = await testbed.until(kinds.PROJECT, "demo", lambda o: condition(o, "WarmPodsFailing") is not None)
    assert "exceeded quota" in found["status"]["warm"]["message"]
