"""Smoke runs with a real apiserver: exactly one through any restart, and the deployment follows its end."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from controller.deployment.smoke import run_rejected
from crds import conditions, kinds, names
from crds.objects import Deployment, Pod, Run
from kube import errors
from tests.cluster.controller.conftest import (
    FAST,
    WAIT_SECONDS,
    ControllerTestbed,
    both_triggers,
    condition,
    controller,
    report_result,
    settings,
)
from tests.cluster.quotas import QUOTA, refuse_all

NO_IMAGE = "registry.crewyard.internal:5000/library/none:1"
PLAN = {"framework": "python", "smoke": {"input": {"topic": "tides"}, "timeout": "2m"}}
CANCEL = {"spec": {"cancel": True}}


@pytest.fixture
def config(kube):
    """Build and run pods never start and never time out."""
    timing = replace(FAST, image_pull=600, start_timeout=600)
    return settings(kube.namespace, service_image=NO_IMAGE, timing=timing)


@pytest.fixture
async def testbed(kube, config, trigger):
    config = replace(config, kopf=trigger == "kopf")
    async with controller(kube, config) as process:
        testbed = ControllerTestbed(kube, config, process)
        await testbed.project()
        yield testbed


async def create(kube, name, **spec):
    spec = {"project": "demo", "source": {"archive": {"upload": "upl_1"}}, **spec}
    await kube.create(kinds.DEPLOYMENT, {"metadata": {"name": name}, "spec": spec})


async def report_image(testbed, process, name, plan):
    """Report the image of a build as its pod does."""
    pod = Pod(await testbed.until(kinds.POD, f"{name}-a1", lambda _: True))
    image = f"{testbed.config.repository('demo')}@sha256:{'ab' * 32}"
    built = {"outcome": "built", "image": image, "plan": plan, "tree": "t", "build_key": "k"}
    uid = (await testbed.kube.get(kinds.DEPLOYMENT, name))["metadata"]["uid"]
    report_result(process, name, uid, pod.uid, built)


async def deploy(testbed, name, plan=PLAN, **spec):
    await create(testbed.kube, name, **spec)
    await report_image(testbed, testbed.process, name, plan)


async def smoke_runs(kube):
    return [Run(raw) for raw in (await kube.list(kinds.RUN, names.LABEL_SMOKE)).items]


async def smoke_run_of(testbed, name):
    found = await testbed.until(kinds.DEPLOYMENT, name, lambda o: o["status"].get("smokeRun"))
    return found["status"]["smokeRun"]


async def end(testbed, run, outcome, **more):
    await testbed.claim(run)
    await testbed.report(run, outcome, **more)


@both_triggers
async def test_a_deployment_is_active_only_after_its_smoke_run(testbed):
    await testbed.deployment("dep-old", image=NO_IMAGE)
    await testbed.wait_active("dep-old")
    await deploy(testbed, "dep-new")
    run = await smoke_run_of(testbed, "dep-new")
    found = await testbed.until(kinds.RUN, run, lambda o: o["status"].get("deployment"))
    assert found["spec"] == {
        "project": "demo",
        "deployment": "dep-new",
        "input": {"topic": "tides"},
        "timeout": "2m",
    }
    pod = await testbed.until(kinds.POD, run, lambda _: True)
    new = await testbed.kube.get(kinds.DEPLOYMENT, "dep-new")
    assert pod["spec"]["containers"][0]["image"] == new["status"]["image"]
    assert condition(new, "SmokeTested") == ("Unknown", "SmokeRunning")
    assert (await testbed.kube.get(kinds.PROJECT, "demo"))["status"]["activeDeployment"] == "dep-old"
    await end(testbed, run, "succeeded")
    await testbed.wait_active("dep-new")
    new = await testbed.kube.get(kinds.DEPLOYMENT, "dep-new")
    assert condition(new, "SmokeTested") == ("True", "SmokeSucceeded")
    # A rollback repeats nothing.
    await testbed.kube.patch(kinds.DEPLOYMENT, "dep-old", {"spec": {"activation": 1}})
    await testbed.wait_active("dep-old")
    await testbed.kube.patch(kinds.DEPLOYMENT, "dep-new", {"spec": {"activation": 1}})
    await testbed.wait_active("dep-new")
    assert [one.name for one in await smoke_runs(testbed.kube)] == [run]
    with pytest.raises(errors.Invalid, match="can no longer be canceled"):
        await testbed.kube.patch(kinds.DEPLOYMENT, "dep-new", CANCEL)


async def test_a_failed_smoke_run_leaves_the_previous_deployment_active(testbed):
    await testbed.deployment("dep-old", image=NO_IMAGE)
    await testbed.wait_active("dep-old")
    await deploy(testbed, "dep-new")
    run = await smoke_run_of(testbed, "dep-new")
    await end(testbed, run, "failed", reason="CrewError", message="no tides today")
    failed = await testbed.until(kinds.DEPLOYMENT, "dep-new", lambda o: Deployment(o).failed)
    error = failed["status"]["error"]
    assert error["reason"] == "SmokeFailed"
    assert run in error["message"] and "CrewError: no tides today" in error["message"]
    assert condition(failed, "Built") == ("True", "Built")
    assert condition(failed, "SmokeTested") == ("False", "SmokeFailed")
    assert (await testbed.kube.get(kinds.PROJECT, "demo"))["status"]["activeDeployment"] == "dep-old"


async def test_a_preview_gets_a_smoke_run_and_builds_go_on_meanwhile(testbed):
    await deploy(testbed, "dep-a", preview={})
    run = await smoke_run_of(testbed, "dep-a")
    # One build at a time: the smoke run occupies no build slot.
    await create(testbed.kube, "dep-b", source={"archive": {"upload": "upl_2"}})
    await testbed.until(kinds.DEPLOYMENT, "dep-b", lambda o: o["status"].get("buildPod"))
    await end(testbed, run, "succeeded")
    await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"]["phase"] == "Superseded")


async def test_canceling_the_deployment_cancels_its_smoke_run(testbed):
    await deploy(testbed, "dep-a")
    run = await smoke_run_of(testbed, "dep-a")
    await testbed.claim(run)
    await testbed.kube.patch(kinds.DEPLOYMENT, "dep-a", CANCEL)
    failed = await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: Deployment(o).failed)
    assert failed["status"]["error"]["reason"] == "Canceled"
    assert (await testbed.kube.get(kinds.RUN, run))["spec"]["cancel"] is True
    assert (await testbed.wait_ended(run)).phase == "Canceled"


async def test_a_deleted_smoke_run_is_not_created_again(testbed):
    await deploy(testbed, "dep-a")
    await testbed.kube.delete(kinds.RUN, await smoke_run_of(testbed, "dep-a"))
    failed = await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: Deployment(o).failed)
    assert "was deleted" in failed["status"]["error"]["message"]
    assert await smoke_runs(testbed.kube) == []


async def test_a_rejected_smoke_run_is_tried_again(testbed, monkeypatch):
    monkeypatch.setattr(run_rejected, "REFUSED_RETRY_SECONDS", 0.3)
    await refuse_all(testbed.kube, kinds.RUN, "no-runs")
    await deploy(testbed, "dep-a")

    def refused(seen):
        tested = conditions.find(Deployment(seen).conditions, conditions.SMOKE_TESTED) or {}
        return "smoke run cannot be created" in tested.get("message", "")

    waiting = await testbed.until(kinds.DEPLOYMENT, "dep-a", refused)
    assert condition(waiting, "SmokeTested") == ("Unknown", "SmokeRunning")
    assert "smokeRun" not in waiting["status"] and await smoke_runs(testbed.kube) == []
    await testbed.kube.delete(QUOTA, "no-runs")
    run = await smoke_run_of(testbed, "dep-a")
    assert [one.name for one in await smoke_runs(testbed.kube)] == [run]


async def test_a_deleted_deployment_deletes_its_smoke_run(testbed):
    await deploy(testbed, "dep-a")
    await smoke_run_of(testbed, "dep-a")
    await testbed.kube.delete(kinds.DEPLOYMENT, "dep-a")
    async with asyncio.timeout(WAIT_SECONDS):
        while await smoke_runs(testbed.kube):
            await asyncio.sleep(0.1)


CUTS = (
    "before image",
    "after image",
    "before create",
    "after create",
    "before record",
    "after record",
    "before end",
)


def cut(process, where):
    """Stop the controller at one write without end, as a kill does; return the event that it is there."""
    kube, reached = process.own.applier.kube, asyncio.Event()
    create, patch = kube.create, kube.patch
    moment, _, step = where.partition(" ")

    async def stop_at(name, now):
        if name == step and now == moment:
            reached.set()
            await asyncio.Event().wait()

    async def cut_create(kind, body):
        if kind != kinds.RUN:
            return await create(kind, body)
        await stop_at("create", "before")
        created = await create(kind, body)
        await stop_at("create", "after")
        return created

    async def cut_patch(kind, name, body, subresource=None):
        status = body.get("status") or {}
        reasons = {one["reason"] for one in status.get("conditions") or ()}
        done = "image" if "image" in status else "record" if "smokeRun" in status else ""
        done = "end" if "SmokeSucceeded" in reasons else done
        if kind != kinds.DEPLOYMENT or not done:
            return await patch(kind, name, body, subresource)
        await stop_at(done, "before")
        changed = await patch(kind, name, body, subresource)
        await stop_at(done, "after")
        return changed

    kube.create, kube.patch = cut_create, cut_patch
    return reached


@pytest.mark.parametrize("where", CUTS)
async def test_a_controller_killed_at_any_step_gives_exactly_one_run(kube, config, where):
    testbed = ControllerTestbed(kube, config)
    await testbed.project()
    await create(kube, "dep-a")
    succeeding = None
    async with controller(kube, config) as first:
        reached = cut(first, where)
        await report_image(testbed, first, "dep-a", PLAN)
        if where == "before end":
            await end(testbed, await smoke_run_of(testbed, "dep-a"), "succeeded")
            succeeding = await smoke_runs(kube)
        async with asyncio.timeout(WAIT_SECONDS):
            await reached.wait()
    async with controller(kube, config) as second:
        if where == "before image":
            await report_image(testbed, second, "dep-a", PLAN)
        if succeeding is None:
            run = await smoke_run_of(testbed, "dep-a")
            succeeding = await smoke_runs(kube)
            with contextlib.suppress(errors.Invalid):
                await end(testbed, run, "succeeded")
        await testbed.wait_active("dep-a")
        assert len(succeeding) == 1
        assert [(one.name, one.uid) for one in await smoke_runs(kube)] == [
            (one.name, one.uid) for one in succeeding
        ]
