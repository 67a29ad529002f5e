"""Starting runs, as far as no object is made."""

import dataclasses

import pytest

from api.services import SERVICES
from crds.installation_limits import Limits


@pytest.fixture
async def crew(yard):
    await yard.project("crew", activeDeployment="dep-a", activatedAt="2026-11-21T10:00:00Z")
    await yard.deployment("dep-a", "crew")
    return "crew"


async def test_a_run_that_could_not_be_made_is_not_there(yard, crew):
    status, body, headers = await yard.call("POST", "/v1/runs", {"deployment": crew})
    assert (status, body["error"]["code"], headers["Retry-After"]) == (503, "unavailable", "2")
    assert (await yard.get("/v1/runs"))["data"] == []


async def test_with_an_idempotency_key_it_stays_to_be_made(yard, crew):
    headers = {"Idempotency-Key": "once"}
    for _ in range(2):
        status, _, _ = await yard.call("POST", "/v1/runs", {"deployment": crew}, headers=headers)
        assert status == 503
    listed = (await yard.get("/v1/runs"))["data"]
    assert [run["status"] for run in listed] == ["pending"]


def limited(yard, **given):
    """The installation has these limits from now on."""
    services = yard.client.server.app[SERVICES]
    config = dataclasses.replace(services.config, limits=Limits(**given))
    object.__setattr__(services, "config", config)


async def test_a_full_queue_is_told_before_anything_is_made(yard, crew):
    limited(yard, queue=2)
    await yard.run("run-a", crew)
    await yard.run("run-b", crew)
    status, body, headers = await yard.call("POST", "/v1/runs", {"deployment": crew})
    assert (status, body["error"]["code"]) == (429, "queue_full")
    assert int(headers["Retry-After"]) > 0
    await yard.run("run-c", "other")
    assert len((await yard.get(f"/v1/runs?project={crew}"))["data"]) == 2


@pytest.mark.parametrize(
    ("given", "body", "status", "said"),
    [
        ({"input_bytes": 100}, {"input": {"a": "x" * 100}}, 413, "larger than 100 bytes"),
        ({"run_max_seconds": 5400}, {"timeout": "2h"}, 400, "at most 1h30m"),
    ],
)
async def test_a_refusal_tells_the_installations_own_limit(yard, crew, given, body, status, said):
    limited(yard, **given)
    found, answer, _ = await yard.call("POST", "/v1/runs", {"deployment": crew, **body})
    assert (found, said in answer["error"]["message"]) == (status, True), answer


async def test_a_run_that_waits_for_a_place_knows_how_long_the_queue_is(yard, crew):
    raws = [await yard.run(f"run-{n}", crew) for n in range(4)]

    async def positions():
        return [(await yard.get(f"/v1/runs/run_{n}"))["data"].get("queue_position") for n in range(4)]

    assert await positions() == [None, None, 1, 2]
    await yard.claim(raws[0])
    assert await positions() == [None, None, 1, 2]
    await yard.end(raws[0], "Succeeded")
    assert await positions() == [None, None, None, 1]
    assert all("queue_position" not in run for run in (await yard.get("/v1/runs"))["data"])


async def test_a_run_that_ended_is_not_cancelled(yard, crew):
    for name, phase, expected in (
        ("run-a", "Canceled", 200),
        ("run-b", "Succeeded", 409),
        ("run-c", "Failed", 409),
    ):
        await yard.end(await yard.run(name, crew), phase)
        status, _, _ = await yard.call("POST", f"/v1/runs/{name.replace('-', '_')}/cancel", {})
        assert status == expected
    status, body, _ = await yard.call("POST", "/v1/runs/run_a/cancel", {"force": True})
    assert (status, body["error"]["details"]["field"]) == (400, "force")


async def test_head_is_get_without_a_body(yard, crew):
    for path in ("/v1/runs", "/v1/projects/crew", "/v1/deployments/dep_a", "/v1/deployments/dep_a/logs"):
        status, raw, headers = await yard.call("HEAD", path)
        assert (status, raw) == (200, b""), path
        assert headers["X-RateLimit-Limit"]
    assert (await yard.call("HEAD", "/v1/runs/run_none"))[0] == 404
