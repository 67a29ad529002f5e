"""Cancellation: what works is stopped in time, what waits never starts, and what was made is kept."""

import time
from datetime import datetime

from tests.e2e.testbed import eventually


async def test_events_are_streamed_and_cancel_ends_the_run(testbed, crew):
    run = await crew.start("sleeps")
    seen = []
    async for message in testbed.stream(f"/v1/runs/{run}/events", seconds=600):
        seen.append(message)
        if message.event == "log" and message.data["message"] == "asleep":
            assert (await testbed.get(f"/v1/runs/{run}"))["status"] == "running"
            answer = await testbed.call("POST", f"/v1/runs/{run}/cancel", {})
            assert answer.status in (200, 202)
    assert seen[-1].event == "run.canceled"
    done = await testbed.get(f"/v1/runs/{run}")
    assert done["status"] == "canceled"
    listed = await testbed.get(f"/v1/runs/{run}/artifacts")
    assert [(item["name"], item["partial"]) for item in listed] == [("begun.txt", True)]
    again = await testbed.call("POST", f"/v1/runs/{run}/cancel", {})
    assert again.status == 200
    shown = await testbed.object("runs", run.replace("_", "-", 1))
    assert shown["status"]["phase"] == "Canceled"


async def beats(testbed, run) -> dict[str, list[float]]:
    """When the crew, its child and the asking for an end were, in epoch seconds, by the log that is kept."""
    text = (await testbed.call("GET", f"/v1/runs/{run}/logs")).body.decode()
    found: dict[str, list[float]] = {"crew": [], "child": [], "asked": []}
    for line in text.splitlines():
        who, _, at = line.partition(" ")
        if who in found:
            found[who].append(float(at))
    return found


async def canceled(testbed, crew, entrypoint) -> tuple[dict, float, dict[str, list[float]]]:
    """A run that is canceled once its crew is deaf: its end, the moment before the POST, and its `beats`."""
    run = await crew.start(entrypoint)
    await crew.wait_for_log(run, "deaf")
    posted = time.time()
    await testbed.call("POST", f"/v1/runs/{run}/cancel", {})
    done = await crew.wait_finished(run)
    assert done["status"] == "canceled"
    return done, posted, await beats(testbed, run)


def count_beats(seen: dict[str, list[float]], who: str) -> int:
    """Return how many beats a process had after SIGTERM. On a slow machine there are fewer, never more."""
    return sum(at > seen["asked"][0] for at in seen[who])


async def test_crew_that_ignores_sigterm_is_killed_after_ten_seconds(testbed, crew):
    """It has ten seconds from SIGTERM on, and so has a child that left its group.

    Counted in the processes' own beats, of which a second has twenty at most: the kubelet would kill them
    forty seconds later.
    """
    done, posted, seen = await canceled(testbed, crew, "endings:deaf")
    assert len(seen["asked"]) == 1
    asked = seen["asked"][0]
    assert posted <= asked
    assert datetime.fromisoformat(done["completed_at"]).timestamp() - asked >= 9.5
    for who in ("crew", "child"):
        # On a slow machine a process may wait seconds for a processor before its last beat.
        assert seen[who][-1] - asked >= 5, who
        assert count_beats(seen, who) <= 400, who
    pod = done["id"].replace("_", "-", 1)
    await eventually(
        lambda: testbed.kubectl("get", "pod", pod, "--ignore-not-found", "-o", "jsonpath={.status.phase}"),
        lambda phase: phase != "Running",
        300,
    )


async def test_child_that_ignores_sigterm_is_killed(testbed, crew):
    _, posted, seen = await canceled(testbed, crew, "endings:leaves_a_deaf_child")
    # No grace is left to wait for: the child lives no longer than its crew, which went at the signal.
    assert posted <= seen["asked"][0]
    assert count_beats(seen, "child") < 100


async def test_finished_run_cannot_be_canceled(testbed, crew):
    run = await crew.run("nothing")
    answer = await testbed.call("POST", f"/v1/runs/{run['id']}/cancel", {})
    assert (answer.status, answer.body["error"]["code"]) == (409, "conflict")


async def test_deleted_run_object_is_canceled(testbed, crew):
    run = await crew.start("sleeps")
    await crew.wait_for_log(run, "asleep")
    await testbed.kubectl("delete", "crun", run.replace("_", "-", 1), "--wait=false")
    done = await crew.wait_finished(run)
    assert done["status"] == "canceled"
    assert (await testbed.events(run))[-1].event == "run.canceled"
