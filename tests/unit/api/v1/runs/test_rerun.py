"""POST /v1/runs/{id}/rerun, with a kube-apiserver that stores the created objects."""

import dataclasses

import pytest
from aiohttp import web
from multidict import CIMultiDict

from api.services import SERVICES
from api.store.index.runs.runs import RunRequest
from crds import names
from crds.kinds import RUN
from crds.runs import trace_context
from tests.testbed.apiserver import serving
from tests.unit.api.conftest import NOW


@pytest.fixture
async def created(testbed, monkeypatch):
    """Return the Run objects that the API creates."""
    objects = []

    async def create(request):
        body = await request.json()
        body["metadata"] |= {
            "uid": f"uid-{len(objects)}",
            "resourceVersion": "77",
            "namespace": "crews",
            "creationTimestamp": "2026-11-21T10:00:00Z",
        }
        objects.append(body)
        return web.json_response(body, status=201)

    await testbed.add_project("crew", activeDeployment="dep-b", activatedAt="2026-11-21T10:00:00Z")
    for deployment in ("dep-a", "dep-b"):
        await testbed.add_deployment(deployment, "crew")
    routes = [web.post(f"/apis/crewyard.dev/v1alpha1/namespaces/crews/{RUN.plural}", create)]
    async with serving(routes) as client:
        app = testbed.client.server.app
        services = dataclasses.replace(app[SERVICES], kube=client)
        monkeypatch.setitem(app._state, SERVICES, services)
        yield objects


async def earlier_run(testbed, **more):
    request = {
        "project": "crew",
        "deployment": "dep-a",
        "input": {"topic": "tides"},
        "timeout": "90s",
        "config": {"tags": ["a"]},
        "context": {"model": "small"},
        "labels": {"team": "tides", names.LABEL_SCHEDULE: "nightly"},
        **more,
    }
    name, _ = await testbed.store.runs.create(RunRequest(**request), NOW, None)
    return names.id_of(name)


async def test_rerun_keeps_what_the_run_was_given(testbed, created):
    earlier = await earlier_run(testbed, entrypoint="pkg.crew:other")
    status, answer, headers = await testbed.call("POST", f"/v1/runs/{earlier}/rerun", {})
    assert status == 201
    again = answer["data"]["id"]
    assert again != earlier and headers["Location"] == f"/v1/runs/{again}"
    shown = (await testbed.get(f"/v1/runs/{again}"))["data"]
    assert (shown["rerun_of"], shown["entrypoint"], shown["timeout"]) == (earlier, "pkg.crew:other", "90s")
    assert (shown["deployment_id"], shown["input"]) == ("dep_a", {"topic": "tides"})
    assert shown["labels"] == {"team": "tides"}
    assert (await testbed.get(f"/v1/runs/{earlier}"))["data"]["rerun_of"] is None
    assert created[0]["spec"] == {
        "project": "crew",
        "deployment": "dep-a",
        "input": {"topic": "tides"},
        "entrypoint": "pkg.crew:other",
        "timeout": "90s",
        "config": {"tags": ["a"]},
        "context": {"model": "small"},
    }
    assert created[0]["metadata"]["annotations"][names.ANNOTATION_RERUN_OF] == names.name_of(earlier)
    assert names.LABEL_SCHEDULE not in created[0]["metadata"]["labels"]


async def test_input_and_deployment_are_replaced(testbed, created):
    earlier = await earlier_run(testbed)
    body = {"deployment": "crew", "input": {}}
    status, answer, _ = await testbed.call("POST", f"/v1/runs/{earlier}/rerun", body)
    assert (status, answer["data"]["deployment_id"], answer["data"]["input"]) == (201, "dep_b", {})


async def test_entrypoint_is_replaced(testbed, created):
    plan = {"entrypoint": "pkg.crew:main", "entrypoints": {"daily": "pkg.crew:daily"}}
    await testbed.add_deployment("dep-named", "crew", plan=plan)
    earlier = await earlier_run(testbed, deployment="dep-named", entrypoint="pkg.crew:other")
    path, runner = f"/v1/runs/{earlier}/rerun", testbed.create_key("run", "read")
    found = []
    for entrypoint in ("daily", None):
        status, answer, _ = await testbed.call("POST", path, {"entrypoint": entrypoint}, bearer=runner)
        assert status == 201
        found.append((await testbed.get(f"/v1/runs/{answer['data']['id']}"))["data"]["entrypoint"])
    assert found == ["daily", None]
    assert "entrypoint" not in created[1]["spec"]
    # The one of the run is code, also where the request does not name it.
    for body in ({}, {"entrypoint": "os:environ.copy"}):
        assert (await testbed.call("POST", path, body, bearer=runner))[0] == 403
    status, answer, _ = await testbed.call("POST", path, {"entrypoint": "weekly"}, bearer=runner)
    assert (status, answer["error"]["details"]["field"]) == (400, "entrypoint")


async def test_idempotency_key_repeats_once(testbed, created):
    earlier, headers = await earlier_run(testbed), {"Idempotency-Key": "once"}
    answers = [await testbed.call("POST", f"/v1/runs/{earlier}/rerun", {}, headers=headers) for _ in range(2)]
    assert [answer[0] for answer in answers] == [201, 201]
    assert len({answer[1]["data"]["id"] for answer in answers}) == len(created) == 1
    changed = await testbed.call("POST", f"/v1/runs/{earlier}/rerun", {"input": {}}, headers=headers)
    assert changed[0] == 409


async def test_rerun_gives_no_more_rights_than_a_run(testbed, created):
    earlier = await earlier_run(testbed, entrypoint="os:environ.copy")
    for scope, expected in (("read", 403), ("run", 403), ("deploy", 403)):
        bearer = testbed.create_key(scope)
        status, _, _ = await testbed.call("POST", f"/v1/runs/{earlier}/rerun", {}, bearer=bearer)
        assert status == expected, scope
    foreign = testbed.create_key("run", projects=["other"])
    assert (await testbed.call("POST", f"/v1/runs/{earlier}/rerun", {}, bearer=foreign))[0] == 404
    both = testbed.create_key("run", "deploy")
    assert (await testbed.call("POST", f"/v1/runs/{earlier}/rerun", {}, bearer=both))[0] == 201
    assert len(created) == 1


async def test_rerun_has_the_limits_of_a_run(testbed, created):
    earlier, body = await earlier_run(testbed), {"input": {"text": "x" * 1024 * 1024}}
    status, answer, _ = await testbed.call("POST", f"/v1/runs/{earlier}/rerun", body)
    assert (status, answer["error"]["details"]["field"]) == (413, "input")
    assert created == []


async def test_rerun_keeps_a_timeout_above_the_limit(testbed, created):
    """kubectl takes it, the claim shortens it, and no body of a rerun can replace it."""
    earlier = await earlier_run(testbed, timeout="999h")
    status, answer, _ = await testbed.call("POST", f"/v1/runs/{earlier}/rerun", {})
    assert status == 201, answer
    assert created[0]["spec"]["timeout"] == "999h"


TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize("path", ["/v1/runs", "rerun"])
async def test_a_run_is_part_of_the_callers_trace(testbed, created, path):
    if path == "rerun":
        path = f"/v1/runs/{await earlier_run(testbed, traceparent=TRACEPARENT.replace('4', '5'))}/rerun"
    body = {"deployment": "crew"}
    status, answer, _ = await testbed.call("POST", path, body, headers={"traceparent": TRACEPARENT})
    assert (status, answer["data"]["trace_id"]) == (201, TRACEPARENT[3:35])
    assert created[0]["metadata"]["annotations"][names.ANNOTATION_TRACEPARENT] == TRACEPARENT
    shown = (await testbed.get(f"/v1/runs/{answer['data']['id']}"))["data"]
    assert shown["trace_id"] == TRACEPARENT[3:35]


@pytest.mark.parametrize(
    "given", [[], ["wrong"], [TRACEPARENT.upper()], [TRACEPARENT, TRACEPARENT], ["\u00e9"]]
)
async def test_without_a_valid_header_it_has_its_own_trace(testbed, created, given):
    headers = CIMultiDict({"Authorization": f"Bearer {testbed.admin}"})
    for text in given:
        headers.add("traceparent", text)
    async with testbed.client.post("/v1/runs", json={"deployment": "crew"}, headers=headers) as response:
        assert response.status == 201
        found = (await response.json())["data"]["trace_id"]
    assert found == trace_context.trace_id(None, "uid-0")
    assert names.ANNOTATION_TRACEPARENT not in created[0]["metadata"]["annotations"]
