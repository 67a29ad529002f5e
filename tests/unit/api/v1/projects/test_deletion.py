"""DELETE and POST of a project while its many runs are removed, with a kube-apiserver."""

import asyncio
import dataclasses
import itertools

import pytest
from aiohttp import web

from api.services import SERVICES
from api.store.errors import StoreUnavailable
from api.store.index import projects
from crds.kinds import PROJECT
from tests.testbed.apiserver import serving

PATH = PROJECT.path("crews")


@pytest.fixture
async def stored(testbed, monkeypatch):
    """Return the Projects that the kube-apiserver has, by name."""
    objects, numbers = {}, itertools.count(20000)

    async def create(request):
        made, number = await request.json(), next(numbers)
        made["metadata"] |= {"uid": f"made-{number}", "resourceVersion": str(number), "namespace": "crews"}
        made["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z"
        objects[made["metadata"]["name"]] = made
        return web.json_response(made, status=201)

    async def delete(request):
        objects.pop(request.match_info["name"], None)
        return web.json_response({})

    async def read(request):
        item = objects.get(request.match_info["name"])
        return web.json_response(item or {"message": "not found"}, status=200 if item else 404)

    item_path = f"{PATH}/{{name}}"
    routes = [web.post(PATH, create), web.delete(item_path, delete), web.get(item_path, read)]
    async with serving(routes) as client:
        app = testbed.client.server.app
        monkeypatch.setitem(app._state, SERVICES, dataclasses.replace(app[SERVICES], kube=client))
        yield objects


@pytest.fixture
async def removal(testbed, stored, monkeypatch):
    """Delete the project `crew` with a deployment; its removal waits until the test has ended."""
    uid = await testbed.add_project("crew", active="dep-a")
    await testbed.add_deployment("dep-a", "crew")
    monkeypatch.setattr(projects, "REMOVAL_WAIT_SECONDS", 0.05)
    async with testbed.store.projects._removal_turn:
        assert (await testbed.call("DELETE", "/v1/projects/crew"))[0] == 204
        yield uid


async def test_a_deletion_does_not_wait_for_all_runs(testbed, stored, monkeypatch):
    uid = await testbed.add_project("crew")
    store = testbed.store
    monkeypatch.setattr(projects, "REMOVAL_WAIT_SECONDS", 0.05)
    async with store.projects._removal_turn, asyncio.timeout(120):
        assert (await testbed.call("DELETE", "/v1/projects/crew"))[0] == 204
        status, body, _ = await testbed.call("POST", "/v1/projects", {"name": "crew"})
        assert (status, body["error"]["details"]["field"]) == (409, "name")
        assert "is still being deleted" in body["error"]["message"]
        assert stored == {}
    await store.projects.start_removal("crew", uid, testbed.clock[0])
    assert (await testbed.call("POST", "/v1/projects", {"name": "crew"}))[0] == 201
    assert list(stored) == ["crew"]


@pytest.mark.parametrize("path", ["projects/crew", "projects/crew/usage", "deployments/dep_a"])
async def test_a_deleted_project_is_not_found_at_once(testbed, removal, path):
    assert (await testbed.call("GET", f"/v1/{path}"))[0] == 404


@pytest.mark.parametrize("path", ["projects", "deployments?project=crew"])
async def test_a_deleted_project_is_not_listed(testbed, removal, path):
    assert (await testbed.get(f"/v1/{path}"))["data"] == []


@pytest.mark.parametrize("deployment", ["dep_a", "crew"])
async def test_no_run_of_a_deleted_project_starts(testbed, removal, deployment):
    body = {"deployment": deployment, "input": {}}
    assert (await testbed.call("POST", "/v1/runs", body))[0] == 404
    assert (await testbed.get("/v1/runs"))["data"] == []


async def test_a_deletion_that_cannot_be_recorded_is_unavailable(testbed, stored, monkeypatch):
    async def fail(*_arguments):
        raise StoreUnavailable("the index is busy; try again")

    await testbed.add_project("crew")
    with monkeypatch.context() as patched:
        patched.setattr(projects, "mark_removed", fail)
        assert (await testbed.call("DELETE", "/v1/projects/crew"))[0] == 503
    assert (await testbed.call("DELETE", "/v1/projects/crew"))[0] == 204
    assert (await testbed.call("GET", "/v1/projects/crew"))[0] == 404
