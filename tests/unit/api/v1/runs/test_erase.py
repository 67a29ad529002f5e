"""DELETE of runs, with a kube-apiserver that stores which objects were deleted."""

import dataclasses

import pytest
from aiohttp import web

from api.services import SERVICES
from crds.kinds import RUN
from tests.testbed.apiserver import serving
from tests.unit.api.v1.test_usage import account_all, add_finished_run

COLLECTIONS = "/apis/crewyard.dev/v1alpha1/namespaces/crews"


@pytest.fixture
async def objects(testbed, monkeypatch):
    """Return the objects that the kube-apiserver has, by name, and the bodies of deletions."""
    present, deletions = {}, []

    async def delete(request):
        name = request.match_info["name"]
        deletions.append((name, (await request.json())["preconditions"]))
        if present.pop(name, None) is None:
            return web.json_response({"kind": "Status", "reason": "NotFound", "code": 404}, status=404)
        return web.json_response({"kind": "Status", "status": "Success"})

    routes = [web.delete(f"{COLLECTIONS}/{RUN.plural}/{{name}}", delete)]
    await testbed.add_project("crew", activeDeployment="dep-a", activatedAt="2026-11-21T10:00:00Z")
    await testbed.add_deployment("dep-a", "crew")
    async with serving(routes) as client:
        app = testbed.client.server.app
        services = dataclasses.replace(app[SERVICES], kube=client)
        monkeypatch.setitem(app._state, SERVICES, services)
        yield present, deletions


async def run_object(testbed, present, name="run-a"):
    await add_finished_run(testbed, name, (100, 20))
    row = await testbed.store.runs.get(name)
    present[name] = {"metadata": {"name": name, "uid": row.uid}}
    return row


async def test_an_erased_run_leaves_its_usage_and_nothing_to_read(testbed, objects):
    present, deletions = objects
    row = await run_object(testbed, present)
    assert (await testbed.call("DELETE", "/v1/runs/run_a"))[0] == 204
    assert deletions == [("run-a", {"uid": row.uid})] and not present
    for path in ("", "/events", "/logs", "/artifacts", "/artifacts/report.md"):
        assert (await testbed.call("GET", f"/v1/runs/run_a{path}"))[0] == 404, path
    assert (await testbed.get("/v1/runs"))["pagination"]["total"] == 0
    await account_all(testbed)
    total = (await testbed.get("/v1/projects/crew/usage"))["data"]["total"]
    assert (total["runs"], total["prompt_tokens"]) == (1, 100)
    entry = (await testbed.get("/v1/audit"))["data"][0]
    assert (entry["method"], entry["path"], entry["project"]) == ("DELETE", "/v1/runs/run_a", "crew")
    assert (await testbed.call("DELETE", "/v1/runs/run_a"))[0] == 404
    # A late event of the watch does not bring it back.
    raw = await testbed.add_run("run-a", "crew")
    assert raw["metadata"]["name"] == "run-a"
    assert (await testbed.call("GET", "/v1/runs/run_a"))[0] == 404


async def test_a_run_whose_object_is_gone_is_erased(testbed, objects):
    present, _ = objects
    await run_object(testbed, present)
    present.clear()
    assert (await testbed.call("DELETE", "/v1/runs/run_a"))[0] == 204
    assert (await testbed.call("GET", "/v1/runs/run_a"))[0] == 404


async def test_a_run_is_erased_although_the_watch_still_shows_its_object(testbed, objects):
    await testbed.add_run("run-a", "crew", phase="Succeeded", completionTime="2026-11-21T10:00:00Z")
    await account_all(testbed)
    assert await testbed.store.run_writer.present()
    await testbed.store.expired_records.delete_run("run-a", testbed.clock[0])
    assert (await testbed.call("GET", "/v1/runs/run_a"))[0] == 404


async def test_a_run_that_has_not_ended_is_kept(testbed, objects):
    _, deletions = objects
    await testbed.add_run("run-a", "crew")
    status, found, _ = await testbed.call("DELETE", "/v1/runs/run_a")
    assert (status, found["error"]["details"]["status"]) == (409, "pending")
    assert "cancel it first" in found["error"]["message"]
    assert deletions == [] and (await testbed.get("/v1/runs/run_a"))["data"]["status"] == "pending"


async def test_erasing_needs_the_scope_deploy(testbed, objects):
    present, deletions = objects
    await run_object(testbed, present)
    caller = testbed.create_key("read", "run", projects=["crew"])
    assert (await testbed.call("DELETE", "/v1/runs/run_a", bearer=caller))[0] == 403
    other_key = testbed.create_key("read", "deploy", projects=["other"])
    assert (await testbed.call("DELETE", "/v1/runs/run_a", bearer=other_key))[0] == 404
    assert deletions == []
