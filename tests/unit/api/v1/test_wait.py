"""Requests that wait for the end of a run or a build: they respond to the change, never to a clock."""

import asyncio

import pytest

from api.services import SERVICES
from api.v1.wait import preferred_seconds
from kube.client import KubeClient

CREATED = "2026-11-21T10:00:00Z"


@pytest.fixture
async def crew(testbed):
    await testbed.add_project("crew", activeDeployment="dep-a")
    await testbed.add_deployment("dep-a", "crew")
    return "crew"


def streams(testbed):
    return testbed.client.server.app[SERVICES].streams


async def until_waiting(testbed, count=1):
    """Return once so many requests wait."""
    async with asyncio.timeout(30):
        while len(streams(testbed)._open) < count:
            await asyncio.sleep(0.01)


async def waiting(testbed, path):
    """Return the task of a request that waits by now."""
    task = asyncio.create_task(testbed.get(path))
    await until_waiting(testbed)
    return task


async def test_a_run_is_returned_once_it_has_ended(testbed, crew):
    raw = await testbed.add_run("run-a", crew)
    task = await waiting(testbed, "/v1/runs/run_a?wait=60")
    await testbed.claim_run(raw)
    await testbed.append_log_lines("run-a", "Reading about tides")
    await asyncio.sleep(0)
    assert not task.done()
    await testbed.finish_run(raw, "Succeeded", result={"output": '{"a": 1}'}, durationMs=5)
    run = (await task)["data"]
    assert (run["status"], run["output"]) == ("succeeded", {"a": 1})
    assert not streams(testbed)._open


async def test_an_ended_run_and_a_passed_time_respond_with_the_state(testbed, crew):
    raw = await testbed.add_run("run-a", crew)
    for wait in (0, 1):
        assert (await testbed.get(f"/v1/runs/run_a?wait={wait}"))["data"]["status"] == "pending"
    await testbed.finish_run(raw, "Succeeded")
    # Not the response of the same request before.
    assert (await testbed.get("/v1/runs/run_a?wait=1"))["data"]["status"] == "succeeded"


async def test_the_second_wait_does_not_get_the_response_of_the_first(testbed, crew):
    raw = await testbed.add_run("run-a", crew)
    first = await waiting(testbed, "/v1/runs/run_a?wait=60")
    [key] = streams(testbed).credentials()
    streams(testbed).end_streams(key)
    assert (await first)["data"]["status"] == "pending"
    second = await waiting(testbed, "/v1/runs/run_a?wait=60")
    await testbed.finish_run(raw, "Succeeded")
    assert (await second)["data"]["status"] == "succeeded"


async def test_a_deployment_is_returned_once_its_build_has_ended(testbed, crew):
    await testbed.add_deployment("dep-b", crew, "Building")
    task = await waiting(testbed, "/v1/deployments/dep_b?wait=60")
    await testbed.add_deployment("dep-c", crew)
    assert not task.done()
    await testbed.add_deployment("dep-b", crew, "Active")
    assert (await task)["data"]["status"] == "superseded"


@pytest.mark.parametrize("wait", ["61", "-1", "1.5", "soon"])
async def test_a_wait_outside_its_range_is_refused(testbed, crew, wait):
    await testbed.add_run("run-a", crew)
    status, found, _ = await testbed.call("GET", f"/v1/runs/run_a?wait={wait}")
    assert (status, found["error"]["details"]["field"]) == (400, "wait")


async def test_the_time_of_a_wait_is_no_response_time(testbed, crew):
    raw = await testbed.add_run("run-a", crew)
    registry = testbed.client.server.app[SERVICES].metrics.registry

    def timed():
        labels = {"route": "/v1/runs/{id}", "method": "GET"}
        return registry.get_sample_value("crewyard_http_request_duration_seconds_count", labels) or 0

    task = await waiting(testbed, "/v1/runs/run_a?wait=60")
    await testbed.finish_run(raw, "Succeeded")
    await task
    assert timed() == 0
    await testbed.get("/v1/runs/run_a?wait=60")
    assert timed() == 1


async def test_waits_are_bounded_like_event_streams(testbed, crew):
    raw = await testbed.add_run("run-a", crew)
    streams(testbed)._limit = 3
    tasks = [asyncio.create_task(testbed.get("/v1/runs/run_a?wait=60")) for _ in range(2)]
    await until_waiting(testbed, 2)
    assert (await testbed.call("GET", "/v1/runs/run_a?wait=60"))[0] == 429
    assert (await testbed.call("GET", "/v1/runs/run_a"))[0] == 200
    await testbed.finish_run(raw, "Succeeded")
    assert {(await task)["data"]["status"] for task in tasks} == {"succeeded"}


async def test_waits_count_for_the_share_of_their_project(testbed, crew):
    raw = await testbed.add_run("run-a", crew)
    streams(testbed)._limit = 3
    first, second, third = (testbed.create_key("read", projects=[crew]) for _ in range(3))
    path = "/v1/runs/run_a?wait=60"
    tasks = [asyncio.create_task(testbed.get(path, bearer=bearer)) for bearer in (first, second)]
    await until_waiting(testbed, 2)
    status, found, _ = await testbed.call("GET", "/v1/runs/run_a?wait=1", bearer=third)
    await testbed.finish_run(raw, "Succeeded")
    assert (status, found["error"]["message"]) == (
        429,
        "the keys of project crew have 2 open event streams; close some of them first",
    )
    assert {(await task)["data"]["status"] for task in tasks} == {"succeeded"}


async def test_a_shutdown_ends_the_wait_with_the_state(testbed, crew):
    await testbed.add_run("run-a", crew)
    task = await waiting(testbed, "/v1/runs/run_a?wait=60")
    streams(testbed).close()
    assert (await task)["data"]["status"] == "pending"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("wait=10", 10),
        ("respond-async, wait=10", 10),
        ('Wait = "7"; foo', 7),
        ("wait=600", 60),
        ("wait=-1", None),
        ("await=5", None),
        ("wait=1.5", None),
    ],
)
def test_the_preference_to_wait(header, seconds):
    assert preferred_seconds(header) == seconds


async def test_all_prefer_lines_are_read(testbed, crew, monkeypatch):
    async def create(_client, _kind, body):
        made = {"namespace": "crews", "uid": "uid-1", "resourceVersion": "9000", "creationTimestamp": CREATED}
        return {**body, "metadata": {**body["metadata"], **made}}

    monkeypatch.setattr(KubeClient, "create", create)
    headers = [
        ("Authorization", f"Bearer {testbed.admin}"),
        ("Prefer", "respond-async"),
        ("Prefer", "wait=0"),
    ]
    async with testbed.client.post("/v1/runs", json={"deployment": crew}, headers=headers) as answer:
        assert (answer.status, answer.headers.get("Preference-Applied")) == (201, "wait=0")


@pytest.mark.parametrize("refusal", ["closing", "full"])
async def test_a_created_run_is_returned_where_the_wait_is_refused(testbed, crew, monkeypatch, refusal):
    """After an error response the client would create a second run."""
    created = []

    async def create(_client, _kind, body):
        created.append(body["metadata"]["name"])
        made = {"namespace": "crews", "uid": "uid-1", "resourceVersion": "9000", "creationTimestamp": CREATED}
        return {**body, "metadata": {**body["metadata"], **made}}

    monkeypatch.setattr(KubeClient, "create", create)
    if refusal == "closing":
        streams(testbed).closing = True
    else:
        streams(testbed)._limit = 0
    preference = {"Prefer": "wait=5"}
    status, found, headers = await testbed.call("POST", "/v1/runs", {"deployment": crew}, headers=preference)
    assert (status, found["data"]["status"], len(created)) == (201, "pending", 1)
    assert "Preference-Applied" not in headers
