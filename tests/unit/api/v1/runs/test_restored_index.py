"""A run that the restored index has without an object: no crew starts a second time."""

import dataclasses

import pytest
from aiohttp import web

from api.projection.recover import recover_all
from api.services import SERVICES
from api.store.index.runs.runs import RunRequest
from api.v1.runs import create as run_creation
from crds.kinds import RUN
from tests.testbed.apiserver import serving
from tests.unit.api.conftest import NOW
from tests.unit.api.store.builders import later

RUNS = f"/apis/crewyard.dev/v1alpha1/namespaces/crews/{RUN.plural}"
RESTORED_AT = later(60)
REQUEST = RunRequest("crew", "dep-a", {"n": 1})


class Objects:
    """The Runs of an apiserver by name."""

    def __init__(self):
        self.runs = {}
        self.unavailable = False

    async def create(self, request):
        if self.unavailable:
            return web.json_response({"reason": "ServiceUnavailable", "message": "not now"}, status=503)
        body = await request.json()
        if body["metadata"]["name"] in self.runs:
            return web.json_response({"reason": "AlreadyExists", "message": "exists"}, status=409)
        return web.json_response(self.add(body), status=201)

    async def get(self, request):
        found = self.runs.get(request.match_info["name"])
        if found is None:
            return web.json_response({"reason": "NotFound", "message": "not found"}, status=404)
        return web.json_response(found)

    def add(self, body):
        metadata = {"uid": "run-uid", "resourceVersion": "77", "namespace": "crews"}
        body["metadata"] |= metadata | {"creationTimestamp": "2026-11-21T10:00:00Z"}
        self.runs[body["metadata"]["name"]] = body
        return body


@pytest.fixture
def objects():
    return Objects()


@pytest.fixture
async def kube(testbed, objects, monkeypatch):
    await testbed.add_project("crew", activeDeployment="dep-a", activatedAt="2026-11-21T10:00:00Z")
    await testbed.add_deployment("dep-a", "crew")
    async with serving([web.post(RUNS, objects.create), web.get(RUNS + "/{name}", objects.get)]) as client:
        app = testbed.client.server.app
        services = app[SERVICES]
        config = dataclasses.replace(services.config, claims_not_before=RESTORED_AT)
        monkeypatch.setitem(app._state, SERVICES, dataclasses.replace(services, kube=client, config=config))
        yield client


async def test_recovery_withdraws_a_run_older_than_the_restore(testbed, kube, objects):
    name, _ = await testbed.store.runs.create(REQUEST, NOW, None)
    await recover_all(testbed.store, kube, later(300), RESTORED_AT)
    assert objects.runs == {}
    assert await testbed.store.runs.get(name) is None


async def test_recovery_links_the_object_of_a_run_older_than_the_restore(testbed, kube, objects):
    name, accepted = await testbed.store.runs.create(REQUEST, NOW, None)
    objects.add(run_creation.manifest(accepted.row, accepted.project_uid, 10_000))
    await recover_all(testbed.store, kube, later(300), RESTORED_AT)
    row = await testbed.store.runs.get(name)
    assert (row.uid, row.status) == ("run-uid", "pending")


async def test_recovery_creates_a_run_younger_than_the_restore(testbed, kube, objects):
    name, _ = await testbed.store.runs.create(REQUEST, later(61), None)
    await recover_all(testbed.store, kube, later(300), RESTORED_AT)
    assert list(objects.runs) == [name]


@pytest.mark.parametrize("recovered_first", [False, True])
async def test_a_repeated_call_starts_no_second_run(testbed, kube, objects, monkeypatch, recovered_first):
    monkeypatch.setattr(run_creation, "FIRST_BACKOFF_SECONDS", 0.01)

    async def post():
        body, headers = {"deployment": "crew"}, {"Idempotency-Key": "once"}
        return (await testbed.call("POST", "/v1/runs", body, headers=headers))[0]

    objects.unavailable = True
    assert await post() == 503
    objects.unavailable = False
    if recovered_first:
        await recover_all(testbed.store, kube, later(300), RESTORED_AT)
    assert [await post() for _ in range(2)] == [404, 404]
    assert objects.runs == {}
