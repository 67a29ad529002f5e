"""Creation of runs, without an apiserver."""

import dataclasses

import pytest

from api.services import SERVICES
from crds.installation_limits import InstallationLimits


@pytest.fixture
async def crew(testbed):
    await testbed.add_project("crew", activeDeployment="dep-a", activatedAt="2026-11-21T10:00:00Z")
    await testbed.add_deployment("dep-a", "crew")
    return "crew"


async def test_failed_creation_leaves_no_run(testbed, crew):
    status, body, headers = await testbed.call("POST", "/v1/runs", {"deployment": crew})
    assert (status, body["error"]["code"], headers["Retry-After"]) == (503, "unavailable", "2")
    assert (await testbed.get("/v1/runs"))["data"] == []


async def test_failed_creation_with_idempotency_key_stays_pending(testbed, crew):
    headers = {"Idempotency-Key": "once"}
    for _ in range(2):
        status, _, _ = await testbed.call("POST", "/v1/runs", {"deployment": crew}, headers=headers)
        assert status == 503
    listed = (await testbed.get("/v1/runs"))["data"]
    assert [run["status"] for run in listed] == ["pending"]


async def test_a_repeated_key_is_not_refused_for_the_queue_of_its_run(testbed, crew):
    set_limits(testbed, queue=1)
    headers = {"Idempotency-Key": "once"}
    found = [
        (await testbed.call("POST", "/v1/runs", {"deployment": crew}, headers=headers))[0] for _ in range(2)
    ]
    assert found == [503, 503]
    assert (await testbed.call("POST", "/v1/runs", {"deployment": crew}))[0] == 429


async def test_idempotency_key_belongs_to_one_api_key(testbed, crew):
    headers = {"Idempotency-Key": "once"}
    keys = [testbed.create_key("run"), testbed.create_key("run")]
    for bearer in (*keys, *keys):
        # The objects cannot be created now; the rows stay, since the calls can be repeated.
        status, _, _ = await testbed.call(
            "POST", "/v1/runs", {"deployment": crew}, headers=headers, bearer=bearer
        )
        assert status == 503
    assert len((await testbed.get("/v1/runs"))["data"]) == 2


def set_limits(testbed, **limits):
    """Set the limits of the installation."""
    services = testbed.client.server.app[SERVICES]
    config = dataclasses.replace(services.config, limits=InstallationLimits(**limits))
    object.__setattr__(services, "config", config)


async def test_full_queue_is_refused(testbed, crew):
    set_limits(testbed, queue=2)
    await testbed.add_run("run-a", crew)
    await testbed.add_run("run-b", crew)
    status, body, headers = await testbed.call("POST", "/v1/runs", {"deployment": crew})
    assert (status, body["error"]["code"]) == (429, "queue_full")
    assert int(headers["Retry-After"]) > 0
    await testbed.add_run("run-c", "other")
    assert len((await testbed.get(f"/v1/runs?project={crew}"))["data"]) == 2


@pytest.mark.parametrize(
    ("limits", "body", "status", "message"),
    [
        ({"input_bytes": 100}, {"input": {"a": "x" * 100}}, 413, "larger than 100 bytes"),
        ({"run_max_seconds": 5400}, {"timeout": "2h"}, 400, "at most 1h30m"),
    ],
)
async def test_error_names_installation_limit(testbed, crew, limits, body, status, message):
    set_limits(testbed, **limits)
    actual, response, _ = await testbed.call("POST", "/v1/runs", {"deployment": crew, **body})
    assert (actual, message in response["error"]["message"]) == (status, True), response


async def test_queue_position(testbed, crew):
    raws = [await testbed.add_run(f"run-{n}", crew) for n in range(4)]

    async def positions():
        return [(await testbed.get(f"/v1/runs/run_{n}"))["data"].get("queue_position") for n in range(4)]

    assert await positions() == [None, None, 1, 2]
    await testbed.claim_run(raws[0])
    assert await positions() == [None, None, 1, 2]
    await testbed.finish_run(raws[0], "Succeeded")
    assert await positions() == [None, None, None, 1]
    assert all("queue_position" not in run for run in (await testbed.get("/v1/runs"))["data"])


SINCE = "2026-11-21T10:00:00Z"
UNSCHEDULABLE = {
    "type": "Succeeded",
    "status": "Unknown",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available",
    "lastTransitionTime": SINCE,
}


async def test_pending_run_shows_why_it_waits(testbed, crew):
    raw = await testbed.add_run("run-a", crew, conditions=[UNSCHEDULABLE])
    shown = (await testbed.get("/v1/runs/run_a"))["data"]
    assert shown["waiting"] == {
        "reason": "Unschedulable",
        "message": "0/1 nodes are available",
        "since": SINCE,
    }
    await testbed.finish_run(raw, "Succeeded")
    assert "waiting" not in (await testbed.get("/v1/runs/run_a"))["data"]


async def test_an_object_without_a_written_status_waits_since_its_creation(testbed, crew):
    """The schema's default conditions have the time of 1970."""
    default = {"type": "Succeeded", "status": "Unknown", "reason": "Pending", "message": "Waiting."}
    unwritten = {"lastTransitionTime": "1970-01-01T00:00:00Z"}
    await testbed.add_run("run-a", crew, conditions=[{**default, **unwritten}])
    shown = (await testbed.get("/v1/runs/run_a"))["data"]
    assert shown["waiting"]["since"] == shown["created_at"]
    ready = {**default, "type": "Ready", **unwritten}
    await testbed.add_deployment("dep-b", crew, "Pending", conditions=[ready])
    shown = (await testbed.get("/v1/deployments/dep_b"))["data"]
    assert shown["waiting"]["since"] == shown["created_at"]


async def test_pending_deployment_shows_why_it_waits(testbed, crew):
    ready = {"type": "Ready", "status": "False", "reason": "Queued", "message": "2 builds at a time."}
    await testbed.add_deployment(
        "dep-b", crew, "Pending", conditions=[{**ready, "lastTransitionTime": SINCE}]
    )
    shown = (await testbed.get("/v1/deployments/dep_b"))["data"]
    assert shown["waiting"] == {
        "reason": "Queued",
        "message": "2 builds at a time. Position 1.",
        "since": SINCE,
    }
    assert "waiting" not in (await testbed.get("/v1/deployments/dep_a"))["data"]


async def test_requested_cancellation_is_shown_until_the_run_has_ended(testbed, crew):
    raw = await testbed.add_run("run-a", crew)
    assert "cancel_requested" not in (await testbed.get("/v1/runs/run_a"))["data"]
    raw["spec"]["cancel"] = True
    await testbed.finish_run(raw, "Running")
    assert (await testbed.get("/v1/runs/run_a"))["data"]["cancel_requested"] is True
    await testbed.finish_run(raw, "Canceled")
    assert "cancel_requested" not in (await testbed.get("/v1/runs/run_a"))["data"]


async def test_names_of_kubectl_are_ids(testbed, crew):
    await testbed.add_run("run-a", crew)
    assert (await testbed.get("/v1/runs/run-a"))["data"]["id"] == "run_a"
    assert (await testbed.get("/v1/deployments/dep-a"))["data"]["id"] == "dep_a"
    # The apiserver is missing: 503 says that the deployment was resolved.
    assert (await testbed.call("POST", "/v1/runs", {"deployment": "dep-a"}))[0] == 503
    status, body, _ = await testbed.call("POST", "/v1/runs", {"deployment": "dep-b"})
    assert (status, body["error"]["details"]["field"]) == (404, "deployment")


async def test_project_with_the_name_of_a_deployment_is_that_project(testbed, crew):
    await testbed.add_project("dep-a")
    status, body, _ = await testbed.call("POST", "/v1/runs", {"deployment": "dep-a"})
    assert (status, "project dep-a has no active deployment" in body["error"]["message"]) == (409, True)
    assert "deploy to it, wait for its build" in body["error"]["message"]


async def test_malformed_id_differs_from_an_unknown_one(testbed):
    malformed, unknown = [(await testbed.call("GET", f"/v1/runs/{name}"))[1] for name in ("a", "run_a")]
    assert "an id looks like run_ab12" in malformed["error"]["message"]
    assert "an id looks like" not in unknown["error"]["message"]


async def test_logs_are_text_for_clients_that_accept_json(testbed, crew):
    await testbed.add_run("run-a", crew)
    for path in ("/v1/runs/run_a/logs", "/v1/deployments/dep_a/logs"):
        status, _, headers = await testbed.call("GET", path, headers={"Accept": "application/json"})
        assert (status, headers["Content-Type"]) == (200, "text/plain; charset=utf-8")


async def test_ended_run_is_not_canceled(testbed, crew):
    for name, phase, expected in (
        ("run-a", "Canceled", 200),
        ("run-b", "Succeeded", 409),
        ("run-c", "Failed", 409),
    ):
        await testbed.finish_run(await testbed.add_run(name, crew), phase)
        status, _, _ = await testbed.call("POST", f"/v1/runs/{name.replace('-', '_')}/cancel", {})
        assert status == expected
    status, body, _ = await testbed.call("POST", "/v1/runs/run_a/cancel", {"force": True})
    assert (status, body["error"]["details"]["field"]) == (400, "force")
    assert body["error"]["message"] == "there is no field 'force'; there are none here"


async def test_head_is_get_without_body(testbed, crew):
    for path in ("/v1/runs", "/v1/projects/crew", "/v1/deployments/dep_a", "/v1/deployments/dep_a/logs"):
        status, raw, headers = await testbed.call("HEAD", path)
        assert (status, raw) == (200, b""), path
        assert headers["X-RateLimit-Limit"]
    assert (await testbed.call("HEAD", "/v1/runs/run_none"))[0] == 404
