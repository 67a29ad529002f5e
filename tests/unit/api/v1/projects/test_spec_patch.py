"""Changes of a project's spec, with a kube-apiserver that stores the Project."""

import dataclasses

import pytest
from aiohttp import web

from api.services import SERVICES
from api.v1.projects.spec_patch import merged
from crds.kinds import PROJECT
from tests.testbed.apiserver import serving

PATH = f"{PROJECT.path('crews')}/crew"
SPEC = {"run": {"timeout": "5m", "warm": 1}, "pod": {"env": [{"name": "A", "value": "1"}]}}
INPUT = {"topic": None, "depth": [None, {"first": None}]}


@pytest.fixture
async def project(testbed, monkeypatch):
    """Return the Project that the kube-apiserver has; it counts each patch in its version."""
    uid = await testbed.add_project("crew", SPEC)
    stored = {"metadata": {"name": "crew", "uid": uid, "resourceVersion": "10000"}, "spec": dict(SPEC)}
    stored["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z"

    async def get(_request):
        return web.json_response(stored)

    async def patch(request):
        assert request.content_type == "application/json-patch+json"
        fields = {one["path"]: one["value"] for one in await request.json() if one["op"] == "add"}
        metadata = stored["metadata"]
        named = fields["/metadata/uid"], fields["/metadata/resourceVersion"]
        if named != (metadata["uid"], metadata["resourceVersion"]):
            return web.json_response({"kind": "Status", "reason": "Conflict", "code": 409}, status=409)
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        stored["spec"] = fields["/spec"]
        return web.json_response(stored)

    async with serving([web.get(PATH, get), web.patch(PATH, patch)]) as client:
        app = testbed.client.server.app
        services = dataclasses.replace(app[SERVICES], kube=client)
        monkeypatch.setitem(app._state, SERVICES, services)
        yield stored


async def test_a_null_in_the_input_of_a_schedule_is_kept(testbed, project):
    path = "/v1/projects/crew/schedules/daily"
    status, made, _ = await testbed.call("PUT", path, {"cron": "@daily", "input": INPUT})
    assert (status, made["data"]["input"]) == (200, INPUT)
    assert project["spec"] == {**SPEC, "schedules": [{"name": "daily", "cron": "@daily", "input": INPUT}]}
    change = {"schedules": [{"name": "hourly", "cron": "@hourly", "input": INPUT}], "run": {"warm": None}}
    assert (await testbed.call("PATCH", "/v1/projects/crew", change))[0] == 200
    assert project["spec"] == {**SPEC, "run": {"timeout": "5m"}, "schedules": change["schedules"]}
    assert (await testbed.call("DELETE", "/v1/projects/crew/schedules/hourly"))[0] == 204
    assert project["spec"] == {**SPEC, "run": {"timeout": "5m"}}


@pytest.mark.parametrize(
    ("current", "patch", "result"),
    [
        (None, {"a": None}, {}),
        ({"a": 1}, {"a": {"b": None, "c": 2}}, {"a": {"c": 2}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": [1, 2]}, {"a": [None]}, {"a": [None]}),
        ({"a": {"b": 1}}, {"a": None, "d": {}}, {"d": {}}),
    ],
)
def test_a_merge_patch_is_applied_as_the_rfc_says(current, patch, result):
    assert merged(current, patch) == result
