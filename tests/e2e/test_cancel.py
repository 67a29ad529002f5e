"""Cancellation: what works is stopped in time, what waits never starts, and what was made is kept."""

import time

from tests.e2e.yard import eventually


async def test_events_arrive_while_the_crew_works_and_cancel_ends_it(yard, crew):
    run = await crew.start("sleeps")
    seen = []
    async for message in yard.stream(f"/v1/runs/{run}/events", seconds=60):
        seen.append(message)
        if message.event == "log" and message.data["message"] == "asleep":
            assert (await yard.get(f"/v1/runs/{run}"))["status"] == "running"
            answer = await yard.call("POST", f"/v1/runs/{run}/cancel", {})
            assert answer.status in (200, 202)
    assert seen[-1].event == "run.canceled"
    done = await yard.get(f"/v1/runs/{run}")
    assert done["status"] == "canceled"
    listed = await yard.get(f"/v1/runs/{run}/artifacts")
    assert [(item["name"], item["partial"]) for item in listed] == [("begun.txt", True)]
    again = await yard.call("POST", f"/v1/runs/{run}/cancel", {})
    assert again.status == 200
    shown = await yard.object("runs", run.replace("_", "-", 1))
    assert shown["status"]["phase"] == "Canceled"


async def test_a_crew_that_does_not_listen_is_dead_within_twelve_seconds(yard, crew):
    run = await crew.start("endings:deaf")
    await crew.says(run, "deaf")
    begun = time.monotonic()
    await yard.call("POST", f"/v1/runs/{run}/cancel", {})
    done = await crew.finished(run)
    assert done["status"] == "canceled"
    assert 9 <= time.monotonic() - begun <= 13
    pod = run.replace("_", "-", 1)
    await eventually(
        lambda: yard.kubectl("get", "pod", pod, "--ignore-not-found", "-o", "jsonpath={.status.phase}"),
        lambda phase: phase != "Running",
        5,
    )


async def test_a_finished_run_cannot_be_canceled(yard, crew):
    run = await crew.run("nothing")
    answer = await yard.call("POST", f"/v1/runs/{run['id']}/cancel", {})
    assert (answer.status, answer.body["error"]["code"]) == (409, "conflict")


async def test_a_run_object_that_is_deleted_ends_canceled(yard, crew):
    run = await crew.start("sleeps")
    await crew.says(run, "asleep")
    await yard.kubectl("delete", "crun", run.replace("_", "-", 1), "--wait=false")
    done = await crew.finished(run)
    assert done["status"] == "canceled"
    assert (await yard.events(run))[-1].event == "run.canceled"
