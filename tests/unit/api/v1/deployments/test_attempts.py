"""The message of a commit's deployment, and of another attempt at it."""

import dataclasses

import pytest
from aiohttp import web

from api.services import SERVICES
from crds.deployment_name import git_name
from crds.kinds import DEPLOYMENT
from tests.testbed.apiserver import serving

GIT = {"url": "https://git.example/x.git"}
COMMIT = "a" * 40
SPEC = {"source": {"git": {**GIT, "commit": COMMIT}}, "gitSha": COMMIT}


@pytest.fixture
async def created(testbed, monkeypatch):
    """Return the specs of the Deployments that the API creates."""
    specs = []

    async def create(request):
        body = await request.json()
        specs.append(body["spec"])
        metadata = {"uid": "u2", "resourceVersion": "7", "creationTimestamp": "2026-11-21T10:00:00Z"}
        return web.json_response({**body, "metadata": {**body["metadata"], **metadata}}, status=201)

    path = f"/apis/crewyard.dev/v1alpha1/namespaces/crews/{DEPLOYMENT.plural}"
    async with serving([web.post(path, create)]) as client:
        app = testbed.client.server.app
        services = dataclasses.replace(app[SERVICES], kube=client)
        monkeypatch.setitem(app._state, SERVICES, services)
        monkeypatch.setattr("api.v1.deployments.create.FIRST_STATUS_TIMEOUT_SECONDS", 0.0)
        yield specs


@pytest.mark.parametrize(
    ("earlier", "given", "message"),
    [
        ({"message": "Ask for tides"}, {}, "Ask for tides"),
        ({"message": "Ask for tides"}, {"message": "Again"}, "Again"),
        ({}, {}, None),
    ],
)
async def test_another_attempt_has_the_message_of_the_first(testbed, created, earlier, given, message):
    uid = await testbed.add_project("crew", {"source": {"git": GIT}})
    await testbed.add_deployment(git_name(uid, SPEC, 1), "crew", "Failed", {**SPEC, **earlier})
    body = {"project": "crew", "source": {"git": {"commit": COMMIT}}, **given}
    status, _, _ = await testbed.call("POST", "/v1/deployments", body)
    assert status == 201
    assert [(spec["attempt"], spec.get("message")) for spec in created] == [(2, message)]


@pytest.mark.parametrize(("given", "message"), [({}, "Ask for tides"), ({"message": "Again"}, "Again")])
async def test_a_commit_without_a_message_is_shown_with_its_subject(testbed, given, message):
    await testbed.add_project("crew")
    await testbed.add_deployment("dep-a", "crew", "Active", {**SPEC, **given}, message="Ask for tides")
    _, response, _ = await testbed.call("GET", "/v1/deployments/dep_a")
    assert response["data"]["message"] == message
