"""Labels in requests, and the filters of GET /v1/runs."""

import pytest

from api.store.index.runs import filtered_listing
from api.store.index.runs.runs import RunRequest
from tests.unit.api.conftest import NOW


@pytest.fixture
async def crew(testbed):
    await testbed.add_project("crew", activeDeployment="dep-a", activatedAt="2026-11-21T10:00:00Z")
    await testbed.add_deployment("dep-a", "crew")
    return "crew"


async def add_run(testbed, **labels):
    name, _ = await testbed.store.runs.create(RunRequest("crew", "dep-a", {}, labels=labels), NOW, None)
    return name.replace("-", "_", 1)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"crewyard.dev/project": "other"}, "the prefixes crewyard.dev"),
        ({"app.kubernetes.io/name": "x"}, "the prefixes crewyard.dev"),
        ({"-team": "x"}, "letters, digits"),
        ({"a" * 64: "x"}, "letters, digits"),
        ({"team": "no spaces"}, "at most 63 letters"),
        ({"team": "a" * 64}, "must have at most 63 characters"),
        ({"team": 7}, "must be a string"),
        ({f"label-{number}": "x" for number in range(17)}, "must have at most 16 fields"),
    ],
)
async def test_labels_that_kubernetes_refuses(testbed, crew, labels, message):
    status, body, _ = await testbed.call("POST", "/v1/runs", {"deployment": crew, "labels": labels})
    assert (status, body["error"]["code"]) == (400, "invalid_request")
    assert message in body["error"]["message"]
    assert body["error"]["details"]["field"].startswith("labels")


async def test_filters(testbed, crew, monkeypatch):
    monkeypatch.setattr(filtered_listing, "MAX_TOTAL", 2)
    tides = [await add_run(testbed, team="tides", stage="test") for _ in range(3)][::-1]
    ants = await add_run(testbed, team="ants")
    assert (await testbed.get(f"/v1/runs/{ants}"))["data"]["labels"] == {"team": "ants"}
    found = await testbed.get("/v1/runs?label=team%3Dtides,stage%3Dtest&per_page=1")
    assert [run["id"] for run in found["data"]] == tides[:1]
    assert found["pagination"] == {
        "total": 2, "total_capped": True, "page": 1, "per_page": 1, "has_more": True,
    }  # fmt: skip
    last = await testbed.get("/v1/runs?label=team%3Dtides&per_page=1&page=3")
    assert [run["id"] for run in last["data"]] == tides[2:]
    assert last["pagination"] == {"total": 3, "page": 3, "per_page": 1, "has_more": False}
    both = await testbed.get("/v1/runs?status=pending,running&label=team%3Dants")
    assert [run["id"] for run in both["data"]] == [ants]
    for query in ("status=running,failed", "created_after=2026-11-22T00:00:00Z", "label=team%3D"):
        assert (await testbed.get(f"/v1/runs?{query}"))["data"] == [], query
    earlier = await testbed.get("/v1/runs?created_before=2026-11-22T00:00:00Z")
    assert [run["id"] for run in earlier["data"]] == [ants, *tides]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("label=team", "label"),
        ("label=a%3D1,b%3D2,c%3D3,d%3D4,e%3D5", "label"),
        ("status=done", "status"),
        ("created_after=yesterday", "created_after"),
        ("created_before=2026-11-21T10:00:00", "created_before"),
    ],
)
async def test_wrong_filters_are_refused(testbed, query, field):
    status, body, _ = await testbed.call("GET", f"/v1/runs?{query}")
    assert (status, body["error"]["details"]["field"]) == (400, field)


@pytest.mark.parametrize("value", ["done", "", "pending,done"])
async def test_a_wrong_status_is_answered_with_the_statuses(testbed, value):
    status, body, _ = await testbed.call("GET", f"/v1/runs?status={value}")
    assert (status, body["error"]["message"]) == (
        400,
        "status must be one of pending, running, succeeded, failed, canceled, or several with commas",
    )


async def test_label_of_a_schedule_is_checked(testbed, crew):
    body = {"cron": "@daily", "labels": {"crewyard.dev/project": "other"}}
    status, answer, _ = await testbed.call("PUT", "/v1/projects/crew/schedules/nightly", body)
    assert (status, answer["error"]["details"]["field"]) == (400, "labels")
