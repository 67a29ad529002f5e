"""Schedules of a Project, with a real apiserver: at most one Run for each tick through any restart."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from controller.process import ControllerProcess
from crds import kinds, names
from crds.objects import Run
from crds.times import format_second
from kube import errors
from tests.cluster.controller.conftest import (
    WAIT_SECONDS,
    ControllerTestbed,
    condition,
    controller,
    settings,
    settle,
)

NO_IMAGE = "registry.crewyard.internal:5000/library/none:1"
YEARLY = "0 0 1 1 *"


def due(seconds_ago=5.0, cron=YEARLY, name="nightly", **more):
    """Return a status entry whose tick has passed."""
    tick = format_second(datetime.now(UTC) - timedelta(seconds=seconds_ago))
    return {"name": name, "expression": f"{cron} UTC", "nextTime": tick, **more}


async def record(testbed, *entries):
    await testbed.kube.patch(kinds.PROJECT, "demo", {"status": {"schedules": list(entries)}}, "status")


async def scheduled_runs(kube):
    return [Run(raw) for raw in (await kube.list(kinds.RUN, names.LABEL_SCHEDULE)).items]


def entry(obj):
    return (obj["status"].get("schedules") or [{}])[0]


async def events(kube, reason):
    return [event for event in (await kube.list(kinds.EVENT)).items if event["reason"] == reason]


async def test_a_due_schedule_starts_a_run_of_the_active_deployment(testbed):
    schedule = {"name": "nightly", "cron": YEARLY, "input": {"topic": "tides"}, "entrypoint": "weekly"}
    schedule["labels"] = {"team": "tides", names.LABEL_SCHEDULE: "another"}
    project = await testbed.project(schedules=[schedule])
    await testbed.deployment(
        "dep-a", image=NO_IMAGE, plan={"entrypoint": "a:b", "entrypoints": {"weekly": "a:c"}}
    )
    await testbed.wait_active("dep-a")
    new = await testbed.until(kinds.PROJECT, "demo", lambda o: entry(o).get("nextTime"))
    assert "lastRun" not in entry(new)
    await record(testbed, due())
    done = await testbed.until(kinds.PROJECT, "demo", lambda o: entry(o).get("lastRun"))
    run = await testbed.until(kinds.RUN, entry(done)["lastRun"], lambda o: o["status"].get("deployment"))
    assert run["status"]["deployment"] == "dep-a"
    assert run["spec"] == {"project": "demo", "input": {"topic": "tides"}, "entrypoint": "weekly"}
    assert run["metadata"]["labels"][names.LABEL_SCHEDULE] == "nightly"
    assert run["metadata"]["labels"]["team"] == "tides"
    assert run["metadata"]["annotations"][names.ANNOTATION_SCHEDULED_AT] == entry(done)["lastTime"]
    assert Run(run).owner_uids == {project.uid}
    assert entry(done)["nextTime"].endswith("-01-01T00:00:00Z")


CUTS = ("before create", "after create", "before status", "after status")


def cut(process: ControllerProcess, where: str) -> asyncio.Event:
    """Stop the controller at one write without end, as a kill does; set the event when it is there."""
    kube, reached = process.own.applier.kube, asyncio.Event()
    create, patch = kube.create, kube.patch

    async def stop():
        reached.set()
        await asyncio.Event().wait()

    async def cut_create(kind, body):
        scheduled = kind == kinds.RUN
        if scheduled and where == "before create":
            await stop()
        result = await create(kind, body)
        if scheduled and where == "after create":
            await stop()
        return result

    async def cut_patch(kind, name, body, subresource=None):
        records = any("lastRun" in one for one in (body.get("status") or {}).get("schedules") or ())
        if records and where == "before status":
            await stop()
        result = await patch(kind, name, body, subresource)
        if records and where == "after status":
            await stop()
        return result

    kube.create, kube.patch = cut_create, cut_patch
    return reached


@pytest.mark.parametrize("where", CUTS)
async def test_a_controller_killed_around_the_tick_gives_exactly_one_run(kube, where):
    testbed = ControllerTestbed(kube, settings(kube.namespace))
    await testbed.project(schedules=[{"name": "nightly", "cron": YEARLY, "startingDeadline": "10m"}])
    await record(testbed, due())
    async with controller(kube, testbed.config) as first:
        reached = cut(first, where)
        async with asyncio.timeout(WAIT_SECONDS):
            await reached.wait()
    async with controller(kube, testbed.config) as second:
        done = await testbed.until(kinds.PROJECT, "demo", lambda o: entry(o).get("lastRun"))
        runs = await scheduled_runs(kube)
        assert [run.name for run in runs] == [entry(done)["lastRun"]]
        # No active deployment: it ends, is deleted, and the tick stays handled.
        await testbed.wait_ended(runs[0].name)
        await kube.delete(kinds.RUN, runs[0].name)
        await kube.patch(kinds.PROJECT, "demo", {"metadata": {"annotations": {f"{names.GROUP}/x": "1"}}})
        await settle(second)
        assert await scheduled_runs(kube) == []


async def test_two_controllers_start_one_run_for_each_tick(kube):
    config = settings(kube.namespace, kopf=False)
    testbed = ControllerTestbed(kube, config)
    names_of_schedules = [f"s{index}" for index in range(6)]
    await testbed.project(schedules=[{"name": one, "cron": YEARLY} for one in names_of_schedules])
    await record(testbed, *(due(name=one) for one in names_of_schedules))

    def all_recorded(obj):
        return all("lastRun" in one for one in obj["status"]["schedules"])

    async with controller(kube, config), controller(kube, config):
        done = await testbed.until(kinds.PROJECT, "demo", all_recorded)
        recorded = sorted(one["lastRun"] for one in done["status"]["schedules"])
        assert sorted(run.name for run in await scheduled_runs(kube)) == recorded


async def test_forbid_starts_the_tick_once_the_previous_run_has_ended(testbed):
    await testbed.project(schedules=[{"name": "nightly", "cron": YEARLY, "concurrencyPolicy": "Forbid"}])
    await testbed.deployment("dep-a", image=NO_IMAGE)
    await testbed.wait_active("dep-a")
    await record(testbed, due(120))
    first = entry(await testbed.until(kinds.PROJECT, "demo", lambda o: entry(o).get("lastRun")))
    await testbed.until(kinds.RUN, first["lastRun"], lambda o: o["status"].get("deployment"))
    await record(testbed, {**first, **due(5)})
    waits = await testbed.until(kinds.PROJECT, "demo", lambda o: entry(o).get("message"))
    assert f"waits until {first['lastRun']} ends" in entry(waits)["message"]
    assert len(await scheduled_runs(testbed.kube)) == 1
    await testbed.kube.patch(kinds.RUN, first["lastRun"], {"spec": {"cancel": True}})
    await testbed.until(kinds.PROJECT, "demo", lambda o: entry(o).get("lastRun") != first["lastRun"])
    assert len(await scheduled_runs(testbed.kube)) == 2
    async with asyncio.timeout(WAIT_SECONDS):  # the recorder writes in the background
        while not (found := await events(testbed.kube, "ScheduleWaiting")):
            await asyncio.sleep(0.1)
    assert len(found) == 1


async def test_replace_cancels_the_previous_run(testbed):
    await testbed.project(schedules=[{"name": "nightly", "cron": YEARLY, "concurrencyPolicy": "Replace"}])
    await testbed.deployment("dep-a", image=NO_IMAGE)
    await testbed.wait_active("dep-a")
    await record(testbed, due(120))
    first = entry(await testbed.until(kinds.PROJECT, "demo", lambda o: entry(o).get("lastRun")))
    await testbed.until(kinds.RUN, first["lastRun"], lambda o: o["status"].get("deployment"))
    await record(testbed, {**first, **due(5)})
    assert (await testbed.wait_ended(first["lastRun"])).phase == "Canceled"
    second = entry(
        await testbed.until(kinds.PROJECT, "demo", lambda o: entry(o)["lastRun"] != first["lastRun"])
    )
    assert not Run(await testbed.kube.get(kinds.RUN, second["lastRun"])).cancel


async def test_a_tick_beyond_its_deadline_is_an_event(testbed):
    await testbed.project(schedules=[{"name": "nightly", "cron": YEARLY, "startingDeadline": "10s"}])
    await testbed.until(kinds.PROJECT, "demo", lambda o: entry(o).get("nextTime"))
    await record(testbed, due(600))
    missed = await testbed.until(kinds.PROJECT, "demo", lambda o: entry(o).get("message"))
    assert "no run could start within startingDeadline, 10s" in entry(missed)["message"]
    assert await scheduled_runs(testbed.kube) == []
    async with asyncio.timeout(120):
        while not await events(testbed.kube, "ScheduleMissed"):
            await asyncio.sleep(0.1)


async def test_an_invalid_schedule_is_in_a_condition_until_it_is_corrected(testbed):
    await testbed.project(schedules=[{"name": "nightly", "cron": "0 0 31 2 *"}])
    project = await testbed.until(kinds.PROJECT, "demo", lambda o: condition(o, "SchedulesInvalid"))
    assert condition(project, "SchedulesInvalid") == ("True", "ScheduleInvalid")
    assert condition(project, "Ready") == ("True", "NoSource")
    corrected = [{"name": "nightly", "cron": YEARLY}]
    await testbed.kube.patch(kinds.PROJECT, "demo", {"spec": {"schedules": corrected}})
    await testbed.until(kinds.PROJECT, "demo", lambda o: condition(o, "SchedulesInvalid") is None)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"cron": "0 0 * *"}, "must have five fields"),
        ({"cron": "TZ=Europe/Berlin 0 0 * * *"}, "set the time zone in timeZone"),
        ({"name": "Nightly"}, "name"),
        ({"timeZone": "../etc/passwd"}, "timeZone"),
        ({"startingDeadline": "soon"}, "must be a duration"),
        ({"entrypoint": "os;system"}, "must be a name of the configuration"),
        ({"concurrencyPolicy": "Queue"}, "Allow"),
    ],
)
async def test_the_apiserver_refuses_what_is_no_schedule(kube, change, says):
    spec = {"schedules": [{"name": "nightly", "cron": YEARLY, **change}]}
    with pytest.raises(errors.Invalid) as caught:
        await kube.create(kinds.PROJECT, {"metadata": {"name": "demo"}, "spec": spec})
    assert says in caught.value.message
