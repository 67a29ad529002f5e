"""Runs through the API: accepted once, visible immediately, canceled."""

import asyncio
from datetime import UTC, datetime

import pytest

from crds.kinds import DEPLOYMENT, PROJECT, RUN
from crds.names import name_of
from crds.times import format_second

SOURCE = {"git": {"url": "https://git.example/x.git", "commit": "a" * 40}}


@pytest.fixture
async def project(testbed):
    """A project with an active deployment."""
    await testbed.data(
        "POST", "/v1/projects", {"name": "crew", "source": {"git": {"url": SOURCE["git"]["url"]}}}
    )
    await testbed.kube.create(
        DEPLOYMENT, {"metadata": {"name": "dep-a"}, "spec": {"project": "crew", "source": SOURCE}}
    )
    await testbed.mark_built("crew", "dep-a")
    return "crew"


async def test_run_of_a_projects_active_deployment(testbed, project):
    body = {"deployment": project, "input": {"topic": "tides"}, "entrypoint": "main:kickoff", "timeout": "5m"}
    status, found, headers = await testbed.call("POST", "/v1/runs", body)
    assert status == 201, found
    made = found["data"]
    assert set(made) == {
        "id",
        "status",
        "created_at",
        "deployment_id",
        "project",
        "input",
        "labels",
        "events_url",
        "trace_id",
    }
    assert (made["status"], made["deployment_id"], made["project"]) == ("pending", "dep_a", "crew")
    assert made["input"] == {"topic": "tides"}
    assert headers["Location"] == f"/v1/runs/{made['id']}"
    spec = (await testbed.kube.get(RUN, name_of(made["id"])))["spec"]
    assert (spec["deployment"], spec["project"], spec["input"]) == ("dep-a", "crew", {"topic": "tides"})
    assert (spec["entrypoint"], spec["timeout"]) == ("main:kickoff", "5m")
    assert [item["id"] for item in await testbed.data("GET", "/v1/runs?project=crew")] == [made["id"]]


async def test_input_omitted_is_an_empty_object(testbed, project):
    assert (await testbed.data("POST", "/v1/runs", {"deployment": "dep_a"}))["input"] == {}


async def test_repeated_request_creates_one_run(testbed, project):
    headers = {"Idempotency-Key": "order-66"}
    bodies = [{"deployment": project, "input": {"a": 1, "b": 2}}] * 5
    made = await asyncio.gather(*(testbed.data("POST", "/v1/runs", b, headers=headers) for b in bodies))
    assert len({run["id"] for run in made}) == 1
    assert len((await testbed.kube.list(RUN)).items) == 1
    status, found, _ = await testbed.call("POST", "/v1/runs", {"deployment": project}, headers=headers)
    assert (status, found["error"]["code"]) == (409, "conflict")


async def test_run_of_unknown_idle_or_failed_deployment_is_refused(testbed, project):
    await testbed.data("POST", "/v1/projects", {"name": "idle"})
    await testbed.kube.create(
        DEPLOYMENT, {"metadata": {"name": "dep-b"}, "spec": {"project": "crew", "source": SOURCE}}
    )
    await testbed.patch_status(
        DEPLOYMENT, "dep-b", phase="Failed", error={"reason": "BuildFailed", "message": "no"}
    )
    while (await testbed.call("GET", "/v1/deployments/dep_b"))[1].get("data", {}).get("status") != "failed":
        await asyncio.sleep(0.02)
    for deployment, expected, code in (
        ("dep_none", 404, "not_found"),
        ("none", 404, "not_found"),
        ("idle", 409, "conflict"),
        ("dep_b", 409, "conflict"),
    ):
        status, found, _ = await testbed.call("POST", "/v1/runs", {"deployment": deployment})
        assert (status, found["error"]["code"]) == (expected, code), deployment
    assert (await testbed.kube.list(RUN)).items == []


async def test_cancel_before_and_after_the_end(testbed, project):
    made = await testbed.data("POST", "/v1/runs", {"deployment": project})
    path = f"/v1/runs/{made['id']}/cancel"
    status, found, _ = await testbed.call("POST", path, {})
    assert (status, found["data"]["id"]) == (202, made["id"])
    assert (await testbed.kube.get(RUN, name_of(made["id"])))["spec"]["cancel"] is True
    assert (await testbed.call("POST", path))[0] == 202
    when = format_second(datetime.now(UTC))
    await testbed.patch_status(RUN, name_of(made["id"]), phase="Canceled", completionTime=when)
    while (await testbed.data("GET", f"/v1/runs/{made['id']}"))["status"] != "canceled":
        await asyncio.sleep(0.02)
    assert (await testbed.call("POST", path))[0] == 200

    other = await testbed.data("POST", "/v1/runs", {"deployment": project})
    await testbed.patch_status(RUN, name_of(other["id"]), phase="Succeeded", completionTime=when)
    while True:
        status, found, _ = await testbed.call("POST", f"/v1/runs/{other['id']}/cancel")
        if status != 503:
            break
        await asyncio.sleep(0.02)
    assert (status, found["error"]["code"]) == (409, "conflict")


async def test_closing_a_stream_cancels_nothing(testbed, project):
    made = await testbed.data("POST", "/v1/runs", {"deployment": project})
    headers = {"Authorization": f"Bearer {testbed.admin}"}
    async with testbed.client.get(f"/v1/runs/{made['id']}/events", headers=headers) as answer:
        await answer.content.readuntil(b"\n\n")
    await asyncio.sleep(0.2)
    assert "cancel" not in (await testbed.kube.get(RUN, name_of(made["id"])))["spec"]
    assert (await testbed.data("GET", f"/v1/runs/{made['id']}"))["status"] == "pending"


async def test_kubectl_run_is_shown_and_deleted_with_project(testbed, project):
    await testbed.kube.create(
        RUN, {"metadata": {"name": "run-mine"}, "spec": {"project": "crew", "input": {"n": 1}}}
    )
    while (await testbed.call("GET", "/v1/runs/run_mine"))[0] != 200:
        await asyncio.sleep(0.02)
    assert (await testbed.data("GET", "/v1/runs/run_mine"))["input"] == {"n": 1}
    assert (await testbed.call("DELETE", "/v1/projects/crew"))[0] == 204
    assert (await testbed.call("GET", "/v1/runs?project=crew"))[1]["data"] == []
    assert await testbed.kube.get(PROJECT, "crew") is None


async def test_a_run_can_be_started_and_awaited_in_one_call(testbed):
    await testbed.call("POST", "/v1/projects", {"name": "crew"})
    await testbed.kube.create(
        DEPLOYMENT,
        {
            "metadata": {"name": "dep-wait"},
            "spec": {"project": "crew", "source": {"archive": {"upload": "upl_1"}}},
        },
    )
    await testbed.mark_built("crew", "dep-wait")
    prefer = {"headers": {"Prefer": "wait=60", "Authorization": f"Bearer {testbed.admin}"}}
    call = asyncio.create_task(testbed.call("POST", "/v1/runs", {"deployment": "crew"}, **prefer))
    async with asyncio.timeout(180):
        while not (listed := (await testbed.kube.list(RUN)).items):
            await asyncio.sleep(0.05)
    assert not call.done()
    error = {"reason": "DeploymentFailed", "message": "m"}
    await testbed.patch_status(RUN, listed[0]["metadata"]["name"], phase="Failed", error=error)
    status, found, headers = await call
    assert (status, headers["Preference-Applied"]) == (201, "wait=60")
    assert (found["data"]["status"], found["data"]["error"]["reason"]) == ("failed", "DeploymentFailed")


DECLARED = {
    "type": "object",
    "properties": {"topic": {"type": "string"}, "depth": {"type": "integer", "default": 3}},
    "required": ["topic"],
}


async def _set_inputs(testbed, declared: bool) -> None:
    plan = {"entrypoint": "main:kickoff", "entrypoints": {"main": "main:kickoff", "other": "main:other"}}
    plan["inputs"] = {"schema": DECLARED, "declared": declared}
    await testbed.patch_status(DEPLOYMENT, "dep-a", plan=plan)
    async with asyncio.timeout(180):
        while (await testbed.data("GET", "/v1/deployments/dep_a/inputs"))["schema"] != DECLARED:
            await asyncio.sleep(0.05)


async def test_an_input_must_fit_what_the_configuration_declares(testbed, project):
    unknown = await testbed.data("GET", "/v1/deployments/dep_a/inputs")
    assert unknown == {"schema": {"type": "object"}, "declared": False}
    await _set_inputs(testbed, True)
    shown = await testbed.data("GET", "/v1/deployments/dep-a/inputs")
    assert shown == {"schema": DECLARED, "declared": True}
    wrong = [
        ({}, "input.topic"),
        ({"input": {"topic": 3}}, "input.topic"),
        ({"input": {"topic": "tides", "depth": "x"}, "entrypoint": "main"}, "input.depth"),
    ]
    for body, field in wrong:
        status, answer, _ = await testbed.call("POST", "/v1/runs", {"deployment": project, **body})
        assert (status, answer["error"]["code"], answer["error"]["details"]["field"]) == (
            400,
            "invalid_request",
            field,
        )
        assert field in answer["error"]["message"]
    assert (await testbed.kube.list(RUN)).items == []
    for body in ({"input": {"topic": "tides", "more": 1}}, {"input": {}, "entrypoint": "other"}):
        await testbed.data("POST", "/v1/runs", {"deployment": project, **body})


async def test_an_input_found_in_the_source_refuses_nothing(testbed, project):
    await _set_inputs(testbed, False)
    assert (await testbed.data("GET", "/v1/deployments/dep_a/inputs"))["declared"] is False
    await testbed.data("POST", "/v1/runs", {"deployment": project, "input": {"topic": 3}})
