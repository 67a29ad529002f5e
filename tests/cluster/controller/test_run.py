"""Runs against a real apiserver and kubelet; the test does the API server's two writes."""

import asyncio
import contextlib
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from controller.run import pod_ref
from controller.run.requeue import WAITED
from crds import kinds
from crds.names import ANNOTATION_MONTH_USE
from crds.objects import Pod, Run
from crds.runs.budget import MonthUse, month_of
from tests.cluster.controller.conftest import (
    FAST,
    WAIT_SECONDS,
    ControllerTestbed,
    both_triggers,
    condition,
    controller,
    settings,
)

NO_IMAGE = "registry.crewyard.internal:5000/library/none:1"


@pytest.fixture
def unrecorded(monkeypatch):
    """Delay the recording of unclaimed pods beyond the length of any test."""
    monkeypatch.setattr(pod_ref, "PROBLEM_DELAY_SECONDS", 600.0)
    monkeypatch.setattr(pod_ref, "STARTING_DELAY_SECONDS", 600.0)


@both_triggers
async def test_run_gets_a_pod_is_claimed_and_ends(testbed):
    await testbed.project()
    # The pod never starts, so it cannot end before the test writes its result.
    await testbed.deployment("dep-a", image=NO_IMAGE)
    await testbed.wait_active("dep-a")
    await testbed.run("run-a", project="demo")
    await testbed.claim("run-a")
    running = await testbed.until(kinds.RUN, "run-a", lambda o: o["status"]["phase"] == "Running")
    assert running["status"]["deployment"] == "dep-a"
    assert running["status"]["startTime"] == running["status"]["claim"]["time"]
    await testbed.report("run-a", "succeeded", output='{"a": 1}')
    run = await testbed.wait_ended("run-a")
    assert run.phase == "Succeeded"
    assert run.status["durationMs"] == 1234
    words = {c["type"]: c["status"] for c in run.conditions}
    assert words == {"Succeeded": "True", "Complete": "True", "Admitted": "True"}
    assert run.status["completionTime"] >= run.status["startTime"]


async def assert_writes(testbed, name, expected):
    """Assert the number of the controller's Run status writes once this run has ended."""
    await testbed.wait_ended(name)
    entry = testbed.process.metrics.writes.labels(kinds.RUN.plural, "patch")
    # A write is counted after its response, later than it is visible.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(WAIT_SECONDS):
            while entry._value.get() < expected:
                await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    assert entry._value.get() == expected


async def test_status_writes_of_admitted_and_queued_runs(unrecorded, testbed):
    project = await testbed.project()
    await testbed.deployment("dep-a", image=NO_IMAGE)
    await testbed.wait_active("dep-a")
    await testbed.settle()
    created = testbed.process.metrics.writes.labels(kinds.POD.plural, "create")._value
    before = created.get()

    async def run(name):
        # As the API server creates it.
        owner = {"apiVersion": "crewyard.dev/v1alpha1", "kind": "Project", "name": "demo", "uid": project.uid}
        body = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"deployment": "dep-a"}}
        await testbed.kube.create(kinds.RUN, body)

    async def running(name):
        await testbed.claim(name)
        await testbed.until(kinds.RUN, name, lambda o: o["status"]["phase"] == "Running")

    for name in ("run-0", "run-1"):
        await run(name)
        await running(name)
    found = Run(await testbed.kube.get(kinds.RUN, "run-0"))
    assert found.status["pod"]["uid"] == (await testbed.kube.get(kinds.POD, "run-0"))["metadata"]["uid"]
    assert (found.status["project"], found.status["deployment"]) == ("demo", "dep-a")
    assert condition(found, "Admitted") == ("True", "Admitted")
    await run("run-2")
    await testbed.until(kinds.RUN, "run-2", lambda o: condition(o, "Admitted") == ("False", "Queued"))
    await testbed.report("run-0", "succeeded")
    await assert_writes(testbed, "run-0", 2 + 1 + 1)
    await running("run-2")
    for name in ("run-1", "run-2"):
        await testbed.report(name, "succeeded")
        await testbed.wait_ended(name)
    await assert_writes(testbed, "run-2", 2 + 2 + 3)
    assert created.get() - before == 3


async def test_unclaimed_start_shows_its_reason(testbed):
    await testbed.project()
    await testbed.deployment("dep-a", image=NO_IMAGE)
    await testbed.run("run-a", deployment="dep-a")
    found = await testbed.until(kinds.RUN, "run-a", lambda o: o["status"].get("pod"))
    assert condition(found, "Admitted") == ("True", "Admitted")
    await testbed.until(kinds.RUN, "run-a", lambda o: condition(o, "Succeeded") == ("Unknown", "ImagePull"))


async def test_cancel_before_pod_is_recorded_stops_the_pod(unrecorded, testbed):
    await testbed.project()
    await testbed.deployment("dep-a", image=NO_IMAGE)
    await testbed.run("run-a", deployment="dep-a")
    await testbed.until(kinds.POD, "run-a", lambda _: True)
    await testbed.kube.patch(kinds.RUN, "run-a", {"spec": {"cancel": True}})
    assert (await testbed.wait_ended("run-a")).phase == "Canceled"
    async with asyncio.timeout(WAIT_SECONDS):
        while (pod := await testbed.kube.get(kinds.POD, "run-a")) and not Pod(pod).finished:
            await asyncio.sleep(0.1)


async def test_unclaimed_pod_is_recreated_when_deleted(unrecorded, testbed):
    await testbed.project()
    await testbed.deployment("dep-a", image=NO_IMAGE)
    await testbed.run("run-a", deployment="dep-a")
    first = await testbed.until(kinds.POD, "run-a", lambda _: True)
    await testbed.kube.delete(kinds.POD, "run-a", grace_seconds=0)
    await testbed.until(kinds.POD, "run-a", lambda o: o["metadata"]["uid"] != first["metadata"]["uid"])


async def test_claimed_unrecorded_pod_is_not_recreated(unrecorded, testbed):
    await testbed.project()
    await testbed.deployment("dep-a", image=NO_IMAGE)
    await testbed.run("run-a", deployment="dep-a")
    pod = await testbed.until(kinds.POD, "run-a", lambda _: True)
    uid = pod["metadata"]["uid"]
    await asyncio.gather(
        testbed.claim("run-a", uid), testbed.kube.delete(kinds.POD, "run-a", grace_seconds=0)
    )
    run = await testbed.wait_ended("run-a")
    assert (run.phase, run.error["reason"]) == ("Failed", "PodDeleted")
    assert run.status["pod"]["uid"] == run.claim["podUid"] == uid


async def test_recreated_pod_is_removed_when_first_claimed(unrecorded, testbed):
    await testbed.project()
    await testbed.deployment("dep-a", image=NO_IMAGE)
    await testbed.run("run-a", deployment="dep-a")
    first = (await testbed.until(kinds.POD, "run-a", lambda _: True))["metadata"]["uid"]
    await testbed.kube.delete(kinds.POD, "run-a", grace_seconds=0)
    await testbed.until(kinds.POD, "run-a", lambda o: o["metadata"]["uid"] != first)
    await testbed.claim("run-a", first)
    assert (await testbed.wait_ended("run-a")).error["reason"] == "PodDeleted"
    async with asyncio.timeout(WAIT_SECONDS):
        while (pod := await testbed.kube.get(kinds.POD, "run-a")) and not Pod(pod).finished:
            await asyncio.sleep(0.1)


async def test_pod_is_restricted_and_deleted_with_its_run(testbed):
    await testbed.project()
    await testbed.deployment("dep-a")
    await testbed.run("run-a", deployment="dep-a")
    found = await testbed.until(kinds.RUN, "run-a", lambda o: o["status"].get("pod"))
    pod = Pod(await testbed.kube.get(kinds.POD, "run-a"))
    assert pod.uid == found["status"]["pod"]["uid"]
    assert pod.owner_uids == {found["metadata"]["uid"]}
    assert not pod.spec.get("volumes")
    await testbed.kube.delete(kinds.RUN, "run-a")
    async with asyncio.timeout(WAIT_SECONDS):
        while await testbed.kube.get(kinds.POD, "run-a"):
            await asyncio.sleep(0.2)


async def test_pod_exit_without_result_fails_the_run(testbed):
    await testbed.project()
    await testbed.deployment("dep-a")
    await testbed.run("run-a", deployment="dep-a")
    run = await testbed.wait_ended("run-a")
    assert (run.phase, run.error["reason"]) == ("Failed", "RunnerLost")
    assert run.error["message"] == (
        "the runner ended with exit code 2: Error; create a new Run to execute it again"
    )
    assert {c["type"]: c["status"] for c in run.conditions}["Stalled"] == "True"


async def test_refusals_name_reason_and_next_step(testbed):
    await testbed.project()
    await testbed.run("run-a", deployment="dep-none")
    await testbed.run("run-b", project="demo")
    await testbed.run("run-c", project="nobody")
    # Wait first: a Run resolved later would get the project's next deployment.
    await testbed.wait_ended("run-b")
    await testbed.deployment("dep-env", plan={"envRequired": ["OPENAI_API_KEY"]})
    await testbed.run("run-d", deployment="dep-env")
    expected = {
        "run-a": ("DeploymentNotFound", "kubectl get cdep"),
        "run-b": ("NoActiveDeployment", "kubectl get cdep"),
        "run-c": ("NoActiveDeployment", "create it"),
        "run-d": ("MissingVariable", "demo-env"),
    }
    for name, (reason, words) in expected.items():
        run = await testbed.wait_ended(name)
        assert (run.phase, run.error["reason"]) == ("Failed", reason)
        assert words in run.error["message"]
        assert await testbed.kube.get(kinds.POD, name) is None


async def test_run_waits_for_its_deployment(testbed):
    await testbed.project()
    spec = {"project": "nothere", "source": {"archive": {"upload": "upl_1"}}}
    await testbed.kube.create(kinds.DEPLOYMENT, {"metadata": {"name": "dep-a"}, "spec": spec})
    await testbed.run("run-early", deployment="dep-a")
    early = await testbed.wait_ended("run-early")
    assert early.error["reason"] == "NoActiveDeployment"
    await testbed.project("nothere")
    await testbed.run("run-a", deployment="dep-a")
    waiting = await testbed.until(
        kinds.RUN,
        "run-a",
        lambda o: any(c["reason"] == "WaitingForDeployment" for c in o["status"]["conditions"]),
    )
    assert waiting["status"]["phase"] == "Pending"
    await testbed.mark_built("dep-a")
    await testbed.until(kinds.RUN, "run-a", lambda o: o["status"].get("pod"))


@both_triggers
async def test_runs_above_the_plan_queue_in_order(testbed):
    await testbed.project()
    await testbed.deployment("dep-a", image=NO_IMAGE)
    names = [f"run-{index}" for index in range(4)]
    for name in names:
        await testbed.run(name, deployment="dep-a")
    for name in names[:2]:
        await testbed.until(kinds.RUN, name, lambda o: o["status"].get("pod"))
    for name in names[2:]:
        queued = await testbed.until(
            kinds.RUN, name, lambda o: any(c["reason"] == "Queued" for c in o["status"]["conditions"])
        )
        assert {c["type"]: c["status"] for c in queued["status"]["conditions"]}["Admitted"] == "False"
        assert "pod" not in queued["status"]
    await testbed.report("run-0", "succeeded")
    await testbed.until(kinds.RUN, "run-2", lambda o: o["status"].get("pod"))
    assert "pod" not in (await testbed.kube.get(kinds.RUN, "run-3"))["status"]


@both_triggers
async def test_cancel_before_and_after_pod_creation(testbed):
    await testbed.project()
    await testbed.deployment("dep-a", image=NO_IMAGE)
    for name in ("run-0", "run-1", "run-2"):
        await testbed.run(name, deployment="dep-a")
    for name in ("run-0", "run-1"):
        await testbed.until(kinds.RUN, name, lambda o: o["status"].get("pod"))
    await testbed.kube.patch(kinds.RUN, "run-2", {"spec": {"cancel": True}})
    run = await testbed.wait_ended("run-2")
    assert run.phase == "Canceled"
    assert run.error is None
    assert await testbed.kube.get(kinds.POD, "run-2") is None
    await testbed.kube.patch(kinds.RUN, "run-0", {"spec": {"cancel": True}})
    assert (await testbed.wait_ended("run-0")).phase == "Canceled"


@both_triggers
async def test_deleted_pod_fails_the_run_for_good(testbed):
    await testbed.project()
    await testbed.deployment("dep-a", image=NO_IMAGE)
    await testbed.run("run-a", deployment="dep-a")
    await testbed.until(kinds.RUN, "run-a", lambda o: o["status"].get("pod"))
    await testbed.kube.delete(kinds.POD, "run-a", grace_seconds=0)
    run = await testbed.wait_ended("run-a")
    assert (run.phase, run.error["reason"]) == ("Failed", "PodDeleted")
    await testbed.settle()
    assert await testbed.kube.get(kinds.POD, "run-a") is None


async def test_pod_without_a_run_slot_requeues_the_run(testbed):
    await testbed.project()
    await testbed.deployment("dep-a", image=NO_IMAGE)
    await testbed.run("run-a", deployment="dep-a")
    recorded = await testbed.until(kinds.RUN, "run-a", lambda o: o["status"].get("pod"))
    first = recorded["status"]["pod"]["uid"]
    # As the kubelet reports a runner that waited for a run slot until its start timeout.
    message = json.dumps(
        {"outcome": None, "message": f"The run was not claimed: {WAITED}", "reported": False}
    )
    ended = {"exitCode": 78, "message": message, "startedAt": None, "finishedAt": None}
    status = {"name": "crew", "image": NO_IMAGE, "imageID": "", "ready": False, "restartCount": 0}
    status["state"] = {"terminated": ended}
    async with asyncio.timeout(WAIT_SECONDS):
        while (pod := await testbed.kube.get(kinds.POD, "run-a")) is None or pod["metadata"]["uid"] == first:
            await testbed.set_pod_status("run-a", first, {"phase": "Failed", "containerStatuses": [status]})
            await asyncio.sleep(0.1)
    found = Run(await testbed.kube.get(kinds.RUN, "run-a"))
    assert found.phase == "Pending"
    await testbed.claim("run-a")
    await testbed.report("run-a", "succeeded")
    assert (await testbed.wait_ended("run-a")).phase == "Succeeded"


async def test_missing_image_fails_after_the_deadline(kube, trigger):
    config = settings(kube.namespace, kopf=trigger == "kopf", timing=replace(FAST, image_pull=6))
    async with controller(kube, config) as process:
        testbed = ControllerTestbed(kube, config, process)
        await testbed.project()
        await testbed.deployment("dep-a", image=NO_IMAGE)
        await testbed.run("run-a", deployment="dep-a")
        run = Run((await testbed.wait_ended("run-a")).raw)
    assert (run.phase, run.error["reason"]) == ("Failed", "ImagePullFailed")


async def test_slot_of_a_deleted_run_goes_to_the_next(testbed):
    # No node has the label: the pods occupy slots and disappear immediately when deleted.
    await testbed.project(pod={"nodeSelector": {"crewyard.dev/none": "here"}})
    await testbed.deployment("dep-a", image=NO_IMAGE)
    await testbed.wait_active("dep-a")
    for name in ("run-a", "run-b"):
        await testbed.run(name, deployment="dep-a")
        await testbed.until(kinds.POD, name, lambda _: True)
    await testbed.run("run-c", deployment="dep-a")
    await testbed.until(kinds.RUN, "run-c", lambda o: condition(o, "Admitted") == ("False", "Queued"))
    await testbed.kube.delete(kinds.RUN, "run-a")
    await testbed.until(kinds.POD, "run-c", lambda _: True)


async def test_a_used_budget_refuses_the_runs_of_kubectl(testbed):
    await testbed.project(budget={"month": {"tokens": 100}})
    await testbed.deployment("dep-a", image=NO_IMAGE)
    await testbed.wait_active("dep-a")
    use = MonthUse(month_of(datetime.now(UTC)), 100, None)
    record = {"metadata": {"annotations": {ANNOTATION_MONTH_USE: use.to_json()}}}
    await testbed.kube.patch(kinds.PROJECT, "demo", record)
    project = await testbed.until(
        kinds.PROJECT, "demo", lambda o: condition(o, "BudgetExceeded") == ("True", "BudgetExceeded")
    )
    await testbed.run("run-a", project="demo")
    run = await testbed.wait_ended("run-a")
    assert (run.phase, (run.error or {})["reason"]) == ("Failed", "BudgetExceeded")
    found = next(one for one in project["status"]["conditions"] if one["type"] == "BudgetExceeded")
    assert run.error["message"] == found["message"]
    assert await testbed.kube.get(kinds.POD, "run-a") is None
    await testbed.kube.patch(kinds.PROJECT, "demo", {"spec": {"budget": {"month": {"tokens": 1000}}}})
    await testbed.until(kinds.PROJECT, "demo", lambda o: condition(o, "BudgetExceeded") is None)
    await testbed.run("run-b", project="demo")
    await testbed.until(kinds.POD, "run-b", lambda o: True)
