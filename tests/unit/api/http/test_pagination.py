"""Lists and single objects: keys, order and pages."""

from datetime import timedelta

import pytest

from api.http.pagination import PageRequest

RUN = {"id", "deployment_id", "project", "status", "created_at", "completed_at", "duration_ms"}
RUN |= {"labels", "usage"}
DEPLOYMENT = {"id", "project", "status", "message", "created_at", "activated_at"}


async def test_run_has_exactly_the_specified_keys(testbed):
    await testbed.add_project("crew")
    await testbed.add_deployment("dep-a", "crew")
    raw = await testbed.add_run("run-a", "crew")
    await testbed.claim_run(raw)
    listed = await testbed.get("/v1/runs")
    assert listed["pagination"] == {"total": 1, "page": 1, "per_page": 20, "has_more": False}
    assert set(listed["data"][0]) == RUN
    assert listed["data"][0]["completed_at"] is None and listed["data"][0]["duration_ms"] is None
    single = (await testbed.get("/v1/runs/run_a"))["data"]
    assert set(single) == RUN | {
        "input",
        "events_url",
        "started_at",
        "created_by",
        "entrypoint",
        "timeout",
        "rerun_of",
        "trace_id",
    }
    assert single["id"] == "run_a" and single["deployment_id"] == "dep_a"
    assert single["input"] == {"topic": "tides"}
    assert single["events_url"] == "http://crewyard.example/v1/runs/run_a/events"

    testbed.clock[0] += timedelta(seconds=3)
    result = {"outcome": "succeeded", "durationMs": 2500, "output": '{"answer": 42}'}
    await testbed.finish_run(raw, "Succeeded", durationMs=2500, result=result)
    done = (await testbed.get("/v1/runs/run_a"))["data"]
    assert set(done) == set(single) | {"output"}
    assert (done["status"], done["output"], done["duration_ms"]) == ("succeeded", {"answer": 42}, 2500)
    assert done["completed_at"] == "2026-11-21T10:00:03Z"


async def test_failed_run_has_an_error(testbed):
    await testbed.add_project("crew")
    raw = await testbed.add_run("run-a", "crew")
    await testbed.finish_run(raw, "Failed", error={"reason": "CrewError", "message": "ValueError: no tide"})
    shown = (await testbed.get("/v1/runs/run_a"))["data"]
    assert shown["error"] == {"reason": "CrewError", "message": "ValueError: no tide"}
    assert "output" not in shown


async def test_deployment_has_exactly_the_specified_keys(testbed):
    await testbed.add_project("crew", activeDeployment="dep-b", activatedAt="2026-11-21T10:00:05Z")
    activated = {"activatedAt": "2026-11-21T10:00:01Z"}
    await testbed.add_deployment("dep-a", "crew", spec={"message": "Begin", "gitSha": "a" * 40}, **activated)
    await testbed.add_deployment("dep-b", "crew")
    await testbed.add_deployment(
        "dep-c", "crew", "Failed", error={"reason": "BuildFailed", "message": "no wheel"}
    )
    await testbed.add_deployment("dep-d", "crew", "Building")
    listed = (await testbed.get("/v1/deployments?project=crew"))["data"]
    assert [item["id"] for item in listed] == ["dep_d", "dep_c", "dep_b", "dep_a"]
    assert [item["status"] for item in listed] == ["building", "failed", "active", "superseded"]
    assert [set(item) for item in listed] == [DEPLOYMENT, DEPLOYMENT | {"error"}, DEPLOYMENT, DEPLOYMENT]
    assert listed[1]["error"] == {"reason": "BuildFailed", "message": "no wheel"}
    assert listed[3]["message"] == "Begin" and listed[3]["activated_at"] == "2026-11-21T10:00:01Z"
    single = (await testbed.get("/v1/deployments/dep_a"))["data"]
    assert set(single) == DEPLOYMENT | {"git_sha", "build_logs_url", "created_by"}
    assert single["build_logs_url"] == "http://crewyard.example/v1/deployments/dep_a/logs"
    assert single["git_sha"] == "a" * 40
    of_status = await testbed.get("/v1/deployments?project=crew&status=active")
    assert [item["id"] for item in of_status["data"]] == ["dep_b"]
    assert of_status["pagination"]["total"] == 1


async def test_project_spec_is_in_snake_case(testbed):
    git = {"url": "https://git.example/x.git", "secretRef": {"name": "pass"}, "ref": {"branch": "main"}}
    spec = {"source": {"git": git}, "pod": {"nodeSelector": {"diskType": "ssd"}}, "plan": "pro"}
    ready = {"type": "Ready", "status": "False", "reason": "GitNotFound", "message": "look at the address"}
    await testbed.add_project("crew", spec, activeDeployment="dep-a", conditions=[ready])
    shown = (await testbed.get("/v1/projects/crew"))["data"]
    assert shown["source"]["git"]["secret_ref"] == {"name": "pass"}
    assert shown["pod"] == {"node_selector": {"diskType": "ssd"}}
    assert (shown["plan"], shown["active_deployment_id"], shown["run"]) == ("pro", "dep_a", None)
    assert shown["ready"] == {"status": False, "reason": "GitNotFound", "message": "look at the address"}
    assert (await testbed.get("/v1/projects"))["data"] == [shown]


async def test_pages_partition_the_list_newest_first(testbed):
    await testbed.add_project("crew")
    for number in range(7):
        await testbed.add_run(f"run-{number}", "crew")
    seen = []
    for page in (1, 2, 3):
        found = await testbed.get(f"/v1/runs?per_page=3&page={page}")
        seen += [item["id"] for item in found["data"]]
        assert found["pagination"] == {"total": 7, "page": page, "per_page": 3, "has_more": page < 3}
    assert seen == [f"run_{number}" for number in reversed(range(7))]
    beyond = await testbed.get("/v1/runs?page=1000000")
    assert beyond["data"] == [] and beyond["pagination"]["has_more"] is False


async def test_list_filters(testbed):
    await testbed.add_project("one")
    await testbed.add_project("two")
    await testbed.add_run("run-a", "one", "dep-a")
    await testbed.add_run("run-b", "two", "dep-b")
    await testbed.finish_run(
        await testbed.add_run("run-c", "two", "dep-c"), "Failed", error={"reason": "X", "message": "y"}
    )

    async def ids(query):
        return [item["id"] for item in (await testbed.get(f"/v1/runs?{query}"))["data"]]

    assert await ids("project=two") == ["run_c", "run_b"]
    assert await ids("project=two&status=failed") == ["run_c"]
    assert await ids("deployment=dep_b") == ["run_b"]
    assert await ids("status=pending") == ["run_b", "run_a"]
    assert await ids("project=three") == []


NOBODYS = [
    "/v1/runs/run-a",
    "/v1/runs/dep_a",
    "/v1/runs/run_",
    "/v1/runs/run_A",
    "/v1/runs/%00",
    "/v1/deployments/run_a",
    "/v1/deployments/dep_a_b",
    "/v1/projects/A",
    "/v1/projects/a%0a",
]


@pytest.mark.parametrize("path", NOBODYS)
async def test_invalid_ids_are_not_found(testbed, path):
    status, body, _ = await testbed.call("GET", path)
    assert (status, body["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("number", "total", "names"),
    [
        (1, 0, {"first": 1, "last": 1}),
        (1, 10, {"first": 1, "last": 1}),
        (1, 11, {"first": 1, "next": 2, "last": 2}),
        (2, 25, {"first": 1, "prev": 1, "next": 3, "last": 3}),
        (3, 25, {"first": 1, "prev": 2, "last": 3}),
        (9, 25, {"first": 1, "prev": 3, "last": 3}),
    ],
)
def test_link_header_has_the_neighboring_pages(number, total, names):
    page = PageRequest(number, 10, "http://crewyard.example/v1/runs", {"project": "a", "status": None})
    expected = [
        f'<http://crewyard.example/v1/runs?project=a&page={n}&per_page=10>; rel="{rel}"'
        for rel, n in names.items()
    ]
    assert page.links(total) == ", ".join(expected)


async def test_following_next_links_returns_every_item_once(testbed):
    await testbed.add_project("crew")
    for number in range(5):
        await testbed.add_run(f"run-{number}", "crew")
    path, met = "/v1/runs?project=crew&per_page=2", []
    while path:
        status, body, headers = await testbed.call("GET", path)
        assert status == 200
        met += [item["id"] for item in body["data"]]
        links = {part.split("; ")[1]: part.split("; ")[0] for part in headers["Link"].split(", ")}
        path = links.get('rel="next"', "").strip("<>").removeprefix("http://crewyard.example")
    assert met == [f"run_{number}" for number in range(4, -1, -1)]
