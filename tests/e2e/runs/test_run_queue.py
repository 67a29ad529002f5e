"""Runs above the plan's limit are queued: first in first out, with their positions."""

import asyncio

import pytest_asyncio

from tests.e2e.conftest import CREW, BuiltCrew
from tests.e2e.testbed import eventually
from tests.e2e.upload_project import tree

PLACES = 2


@pytest_asyncio.fixture(loop_scope="session")
async def small(testbed, upload_projects) -> BuiltCrew:
    """The same crew in a project with a plan of two parallel runs."""
    upload_project = await upload_projects(plan="free")
    return BuiltCrew(testbed, upload_project.project, await upload_project.deploy_and_wait(tree(CREW)))


async def positions(testbed, runs) -> list[int]:
    """The positions that the waiting ones are shown with, in the order of `runs`."""
    shown = await asyncio.gather(*(testbed.get(f"/v1/runs/{run}") for run in runs))
    return [run["queue_position"] for run in shown if run.get("queue_position")]


async def test_run_queue(testbed, small):
    """Slow: eight runs, two at a time."""
    # The first two hold their places until they get an answer.
    runs = [await small.start("questions:holds") for _ in range(PLACES)]
    runs += [await small.start("sleeps", input={"seconds": 3}) for _ in range(8 - PLACES)]
    await eventually(
        lambda: positions(testbed, runs),
        lambda seen: seen == list(range(1, len(seen) + 1)) and len(seen) == 6,
        300,
    )
    listed = await testbed.get("/v1/runs", project=small.project)
    assert all("queue_position" not in item for item in listed)
    canceled = runs[5]
    answer = await testbed.call("POST", f"/v1/runs/{canceled}/cancel", {})
    assert answer.status in (200, 202)
    waiting = await eventually(
        lambda: positions(testbed, runs), lambda seen: seen == list(range(1, len(seen) + 1)), 60
    )
    assert len(waiting) <= 5
    for run in runs[:PLACES]:
        await eventually(
            lambda run=run: testbed.get(f"/v1/runs/{run}"), lambda seen: seen.get("input_requests"), 300
        )
        await testbed.post(f"/v1/runs/{run}/inputs/q1", {"value": "yes"})

    done = [await small.wait_finished(run) for run in runs]
    assert [run["status"] for run in done] == [*["succeeded"] * 5, "canceled", *["succeeded"] * 2]
    assert done[5].get("started_at") is None
    pod = await testbed.kubectl("get", "pod", canceled.replace("_", "-", 1), check=False)
    assert "NotFound" in pod

    # The crews say themselves when they ran.
    spans = [run["output"] for run in done if run["status"] == "succeeded"]
    starts = [span["begun"] for span in spans]
    # Two that have places at the same time may begin in either order.
    assert all(starts[i] <= later for i in range(len(starts)) for later in starts[i + PLACES :])
    for span in spans:
        assert sum(other["begun"] <= span["begun"] < other["ended"] for other in spans) <= PLACES


async def test_queued_run_is_visible_in_kubectl(testbed, small):
    """Slow: three runs, one of them after two others ended."""
    # The first two hold their slots until the queued one was seen.
    runs = [await small.start("sleeps", input={"seconds": 300 if n < PLACES else 0}) for n in range(3)]
    shown = await eventually(
        lambda: testbed.object("runs", runs[2].replace("_", "-", 1)),
        lambda seen: any(
            c["type"] == "Admitted" and c["status"] == "False" for c in seen["status"].get("conditions", ())
        ),
        300,
    )
    admitted = next(c for c in shown["status"]["conditions"] if c["type"] == "Admitted")
    assert "2" in admitted["message"]
    for run in runs[:PLACES]:
        await testbed.post(f"/v1/runs/{run}/cancel", {})
    assert (await small.wait_finished(runs[2]))["status"] == "succeeded"
    shown = await testbed.object("runs", runs[2].replace("_", "-", 1))
    admitted = next(c for c in shown["status"]["conditions"] if c["type"] == "Admitted")
    assert admitted["status"] == "True"
