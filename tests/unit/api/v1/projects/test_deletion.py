"""DELETE and POST of a project while its many runs are removed, with a kube-apiserver."""

import asyncio
import dataclasses
import itertools

import pytest
from aiohttp import web

from api.services import SERVICES
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

    async with serving([web.post(PATH, create), web.delete(f"{PATH}/{{name}}", delete)]) as client:
        app = testbed.client.server.app
        monkeypatch.setitem(app._state, SERVICES, dataclasses.replace(app[SERVICES], kube=client))
        yield objects


async def test_a_deletion_does_not_wait_for_all_runs(testbed, stored, monkeypatch):
    uid = await testbed.add_project("crew")
    store = testbed.store
    monkeypatch.setattr(projects, "REMOVAL_WAIT_SECONDS", 0.05)
    async with store.projects._removal_turn, asyncio.timeout(20):
        assert (await testbed.call("DELETE", "/v1/projects/crew"))[0] == 204
        assert (await testbed.call("GET", "/v1/projects/crew"))[0] == 200
        status, body, _ = await testbed.call("POST", "/v1/projects", {"name": "crew"})
        assert (status, body["error"]["details"]["field"]) == (409, "name")
        assert "is still being deleted" in body["error"]["message"]
        assert stored == {}
    await store.projects.start_removal("crew", uid, testbed.clock[0])
    assert (await testbed.call("GET", "/v1/projects/crew"))[0] == 404
    assert (await testbed.call("POST", "/v1/projects", {"name": "crew"}))[0] == 201
    assert list(stored) == ["crew"]
