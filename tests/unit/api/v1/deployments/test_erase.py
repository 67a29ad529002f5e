"""DELETE of deployments, with a kube-apiserver that stores the objects."""

import dataclasses

import pytest
from aiohttp import web

from api.services import SERVICES
from crds.kinds import DEPLOYMENT, PROJECT
from crds.names import ANNOTATION_ERASED
from crds.objects import Deployment
from tests.testbed.apiserver import serving

COLLECTIONS = "/apis/crewyard.dev/v1alpha1/namespaces/crews"
COMMIT = "c" * 40
MISSING = {"kind": "Status", "reason": "NotFound", "code": 404}


@pytest.fixture
async def objects(testbed, monkeypatch):
    """Return the Deployments that the kube-apiserver has, by name."""
    present = {}

    async def get(request):
        found = present.get(request.match_info["name"])
        return web.json_response(found or MISSING, status=200 if found else 404)

    async def patch(request):
        found, metadata = present[request.match_info["name"]]["metadata"], (await request.json())["metadata"]
        if (metadata["uid"], metadata["resourceVersion"]) != (found["uid"], found["resourceVersion"]):
            return web.json_response({"kind": "Status", "reason": "Conflict", "code": 409}, status=409)
        found["annotations"] = metadata["annotations"]
        found["resourceVersion"] = str(int(found["resourceVersion"]) + 1)
        return web.json_response(present[request.match_info["name"]])

    async def project(_request):
        status = {"activeDeployment": "dep-b", "source": {"commit": COMMIT}}
        return web.json_response({"metadata": {"name": "crew"}, "spec": {}, "status": status})

    path = f"{COLLECTIONS}/{DEPLOYMENT.plural}/{{name}}"
    routes = [
        web.get(path, get),
        web.patch(path, patch),
        web.get(f"{COLLECTIONS}/{PROJECT.plural}/crew", project),
    ]
    await testbed.add_project("crew", activeDeployment="dep-b", activatedAt="2026-11-21T10:00:00Z")
    present["dep-b"] = await testbed.add_deployment("dep-b", "crew")
    async with serving(routes) as client:
        app = testbed.client.server.app
        services = dataclasses.replace(app[SERVICES], kube=client)
        monkeypatch.setitem(app._state, SERVICES, services)
        yield present


@pytest.mark.parametrize("phase", ["Superseded", "Failed"])
async def test_an_erased_deployment_is_marked_for_the_controller_and_hidden(testbed, objects, phase):
    error = {"error": {"reason": "BuildFailed", "message": "no"}} if phase == "Failed" else {}
    objects["dep-a"] = await testbed.add_deployment("dep-a", "crew", phase, **error)
    assert (await testbed.call("DELETE", "/v1/deployments/dep_a"))[0] == 204
    assert objects["dep-a"]["metadata"]["annotations"].keys() == {ANNOTATION_ERASED}
    assert (await testbed.call("GET", "/v1/deployments/dep_a"))[0] == 404
    assert (await testbed.call("DELETE", "/v1/deployments/dep_a"))[0] == 404
    assert [row["id"] for row in (await testbed.get("/v1/deployments?project=crew"))["data"]] == ["dep_b"]
    # A later event of the watch does not bring it back, unless a user has activated it with kubectl.
    await testbed.store.deployments.observe(Deployment(objects["dep-a"]))
    assert (await testbed.call("GET", "/v1/deployments/dep_a"))[0] == 404
    objects["dep-a"]["spec"]["activation"] = 1
    await testbed.store.deployments.observe(Deployment(objects["dep-a"]))
    assert (await testbed.call("GET", "/v1/deployments/dep_a"))[0] == 200
    entry = (await testbed.get("/v1/audit"))["data"][0]
    assert (entry["method"], entry["path"], entry["project"]) == ("DELETE", "/v1/deployments/dep_a", "crew")


async def test_a_deployment_whose_object_is_gone_is_erased(testbed, objects):
    await testbed.add_deployment("dep-a", "crew", "Superseded")
    assert (await testbed.call("DELETE", "/v1/deployments/dep_a"))[0] == 204
    assert (await testbed.call("GET", "/v1/deployments/dep_a"))[0] == 404


@pytest.mark.parametrize(
    ("phase", "spec", "next_step"),
    [
        ("Active", {}, "roll back to another one"),
        ("Superseded", {"activation": 1}, "roll back to another one"),
        ("Building", {}, "cancel it first"),
        ("Superseded", {"source": {"git": {"url": "u", "commit": COMMIT}}}, "push another commit"),
    ],
)
async def test_a_deployment_in_use_is_kept(testbed, objects, phase, spec, next_step):
    objects["dep-a"] = await testbed.add_deployment("dep-a", "crew", phase, spec)
    status, found, _ = await testbed.call("DELETE", "/v1/deployments/dep_a")
    assert status == 409 and next_step in found["error"]["message"]
    assert (await testbed.call("GET", "/v1/deployments/dep_a"))[0] == 200
    assert "annotations" not in objects["dep-a"]["metadata"]


async def test_a_deployment_that_runs_need_is_kept(testbed, objects):
    objects["dep-a"] = await testbed.add_deployment("dep-a", "crew", "Superseded")
    await testbed.add_run("run-a", "crew", "dep-a")
    status, found, _ = await testbed.call("DELETE", "/v1/deployments/dep_a")
    assert status == 409 and "pending runs (1)" in found["error"]["message"]
    assert "annotations" not in objects["dep-a"]["metadata"]


async def test_erasing_needs_the_scope_deploy(testbed, objects):
    objects["dep-a"] = await testbed.add_deployment("dep-a", "crew", "Superseded")
    caller = testbed.create_key("read", "run", projects=["crew"])
    assert (await testbed.call("DELETE", "/v1/deployments/dep_a", bearer=caller))[0] == 403
    other_key = testbed.create_key("read", "deploy", projects=["other"])
    assert (await testbed.call("DELETE", "/v1/deployments/dep_a", bearer=other_key))[0] == 404
