"""Builds in line: their positions, their log while they go on, and what is left of one that is deleted."""

import pytest

from tests.e2e.slow_source import slow_source
from tests.e2e.testbed import eventually


async def installing(upload_project, deployment: str) -> None:
    """Wait until a container installs its dependencies."""

    async def look() -> bool:
        for pod in await upload_project.pods(deployment):
            for status in pod["status"].get("initContainerStatuses", []):
                if status["name"] in ("kaniko", "install") and "running" in status["state"]:
                    return True
        return False

    await eventually(look, lambda there: there, 600)


async def test_deployment_deletion_stops_its_pods(testbed, upload_projects):
    """Slow: a build is stopped with its grace period, then another one runs."""
    upload_project = await upload_projects()
    deployment = await upload_project.deploy(slow_source(1200))
    await installing(upload_project, deployment)
    await testbed.kubectl("delete", "cdep", deployment.replace("_", "-", 1), "--wait=false")
    # Long before what it installs would have come to its end.
    await eventually(lambda: upload_project.pods(deployment), lambda pods: not pods, 600)
    # The API hears of it by a watch of its own.
    await eventually(
        lambda: testbed.call("GET", f"/v1/deployments/{deployment}"), lambda answer: answer.status == 404
    )
    # Its place is free: the next one is built.
    assert (
        await upload_project.wait_finished(await upload_project.deploy({"main.py": "def kickoff(): ..."}))
    )["status"] == "active"


async def test_build_log_is_streamed_during_the_build(testbed, upload_projects):
    """Slow: builds a dependency image that takes a given time."""
    upload_project = await upload_projects()
    deployment = await upload_project.deploy(slow_source(4))
    live, ended = [], None
    async for message in testbed.stream(f"/v1/deployments/{deployment}/logs", seconds=900):
        if message.event == "end":
            ended = message.data
            break
        status = (await testbed.get(f"/v1/deployments/{deployment}"))["status"]
        live.append((message.data["message"].strip(), status))
    assert ended == {"status": "active"}
    # Our own lines and uv's, which the container prints that installs, arrive before the end.
    early = " ".join(line for line, status in live if status == "building")
    assert "plan: python" in early and "Building slow" in early, live
    assert "Building slow" in await upload_project.log(deployment)


@pytest.mark.nightly
@pytest.mark.exclusive
async def test_builds_are_queued(testbed, upload_projects):
    """One at a time for a project, two for the installation; the others say where they stand.

    Slow: four builds, one after the other in two places.
    """
    projects = [await upload_projects() for _ in range(3)]
    first = [await upload_project.deploy(slow_source(8)) for upload_project in projects]
    second = await projects[0].deploy({"main.py": "def kickoff(inputs):\n    return 2\n"})

    async def positions() -> list[int | None]:
        shown = [await testbed.get(f"/v1/deployments/{one}") for one in (first[2], second)]
        return [one.get("queue_position") for one in shown]

    await eventually(positions, lambda seen: seen == [1, 2], 300)
    assert (await testbed.get(f"/v1/deployments/{first[2]}"))["status"] == "pending"

    most = 0

    async def look() -> set[str]:
        nonlocal most
        states = [(await testbed.get(f"/v1/deployments/{one}"))["status"] for one in (*first, second)]
        most = max(most, states.count("building"))
        return set(states)

    await eventually(look, lambda states: not states & {"pending", "building"}, 900, 0.3)
    assert most <= 2
    assert [(await testbed.get(f"/v1/deployments/{one}"))["status"] for one in (second, *first[1:])] == [
        "active"
    ] * 3
