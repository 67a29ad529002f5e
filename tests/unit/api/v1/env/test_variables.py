"""Environment variables through the API: what a run could not start with is refused."""

import asyncio
import base64

import pytest

from api.v1 import conflicts
from api.v1.env import view
from api.v1.env.schema import MAX_VARIABLES
from kube import errors as kube_errors
from kube.client import KubeClient
from tests.unit.api.conftest import NOW

MOST = 131_072 - len("TIDE=") - 1
"""The longest value of TIDE: Linux allows 131,072 bytes for `TIDE=value` and the NUL after it."""


@pytest.fixture
async def crew(testbed):
    await testbed.add_project("crew")
    return "crew"


@pytest.mark.parametrize("value", ["x" * (MOST + 1), "é" * (MOST // 2 + 1), "x" * 200_000])
async def test_a_variable_that_stops_every_run_is_refused(testbed, crew, value):
    requests = (
        ("/v1/projects/crew/env", {"variables": {"MOON": "", "TIDE": value}}, "variables.TIDE"),
        ("/v1/projects/crew/env/TIDE", {"value": value}, "value"),
    )
    for path, body, field in requests:
        status, found, _ = await testbed.call("PUT", path, body)
        error = found["error"]
        assert (status, error["code"], error["details"]["field"]) == (400, "invalid_request", field)
        assert field in error["message"] and "at most 131" in error["message"]
        assert value not in error["message"]


async def test_the_longest_variables_are_stored(testbed, crew, monkeypatch):
    written = []

    async def get(_client, _kind, _name):
        return None

    async def create(_client, _kind, body):
        written.append(body)
        return body

    monkeypatch.setattr(KubeClient, "get", get)
    monkeypatch.setattr(KubeClient, "create", create)
    for value in ("x" * MOST, "é" * (MOST // 2)):
        body = {"variables": {"TIDE": value, "MOON": value}}
        status, found, _ = await testbed.call("PUT", "/v1/projects/crew/env", body)
        assert status == 200, found
    assert [set(body["data"]) for body in written] == [{"TIDE", "MOON"}] * 2


@pytest.fixture
def secrets(monkeypatch):
    """Return the one Secret of an apiserver by its name; a patch of an older version is a conflict."""
    stored = {}

    async def get(_client, _kind, name):
        await asyncio.sleep(0)
        return stored.get(name)

    async def create(_client, _kind, body):
        if body["metadata"]["name"] in stored:
            raise kube_errors.AlreadyExists(409, "AlreadyExists", "no")
        stored[body["metadata"]["name"]] = {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}
        return stored[body["metadata"]["name"]]

    async def patch(_client, _kind, name, body):
        before = stored[name]
        version = before["metadata"]["resourceVersion"]
        if body["metadata"]["resourceVersion"] != version:
            raise kube_errors.KubeConflict(409, "Conflict", "no")
        data = {key: value for key, value in {**before["data"], **body["data"]}.items() if value is not None}
        metadata = {**before["metadata"], **body["metadata"], "resourceVersion": str(int(version) + 1)}
        stored[name] = {**before, "metadata": metadata, "data": data}
        return stored[name]

    for method in (get, create, patch):
        monkeypatch.setattr(KubeClient, method.__name__, method)
    return stored


async def test_variables_set_one_by_one_have_the_limit_of_all(testbed, crew, secrets):
    async def put(name, size):
        return await testbed.call("PUT", f"/v1/projects/crew/env/{name}", {"value": "x" * size})

    each = view.MAX_BYTES // 5
    assert [(await put(f"V{number}", each - 2))[0] for number in range(5)] == [200] * 5
    left = view.MAX_BYTES - 5 * each
    status, found, _ = await put("W", left)
    assert (status, found["error"]["details"]) == (413, {"limit_bytes": view.MAX_BYTES})
    assert "project's variables" in found["error"]["message"]
    assert (await put("W", left - 1))[0] == 200
    assert (await put("V0", each - 1))[0] == 413


async def test_what_kubectl_named_can_be_removed(testbed, crew, secrets):
    assert (await testbed.call("PUT", "/v1/projects/crew/env/TIDE", {"value": "neap"}))[0] == 200
    (secret,) = secrets.values()
    secret["data"] |= {"my-var": "eA==", "PYTHONPATH": "eA=="}
    secret["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z"
    listed = await testbed.get("/v1/projects/crew/env")
    assert [item["name"] for item in listed["data"]] == ["PYTHONPATH", "TIDE", "my-var"]
    for name, expected in (("my-var", 204), ("PYTHONPATH", 204), ("my-var", 400), ("MOON", 204)):
        assert (await testbed.call("DELETE", f"/v1/projects/crew/env/{name}"))[0] == expected, name
    assert [set(secret["data"]) for secret in secrets.values()] == [{"TIDE"}]


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        ([], [("Project", "crew")]),
        ([{"kind": "ExternalSecret", "name": "env"}], [("ExternalSecret", "env")]),
    ],
)
async def test_project_becomes_the_owner_of_a_secret_without_one(testbed, crew, secrets, owners, expected):
    assert (await testbed.call("PUT", "/v1/projects/crew/env/TIDE", {"value": "neap"}))[0] == 200
    (secret,) = secrets.values()
    secret["metadata"]["ownerReferences"] = owners
    assert (await testbed.call("PUT", "/v1/projects/crew/env/MOON", {"value": "full"}))[0] == 200
    (secret,) = secrets.values()
    assert [(owner["kind"], owner["name"]) for owner in secret["metadata"]["ownerReferences"]] == expected


async def test_variables_above_the_limit_can_be_replaced(testbed, crew, secrets):
    assert (await testbed.call("PUT", "/v1/projects/crew/env/TIDE", {"value": "old"}))[0] == 200
    (secret,) = secrets.values()
    secret["data"]["MOON"] = base64.b64encode(b"x" * view.MAX_BYTES).decode()
    for value, expected in (("new", 200), ("longer", 413), ("", 200)):
        status, _, _ = await testbed.call("PUT", "/v1/projects/crew/env/TIDE", {"value": value})
        assert status == expected


async def test_one_of_too_many_variables_of_kubectl_can_be_changed(testbed, crew, secrets):
    await testbed.call("PUT", "/v1/projects/crew/env/V0", {"value": "x"})
    (secret,) = secrets.values()
    secret["data"] |= {f"V{number}": "" for number in range(MAX_VARIABLES + 1)}
    assert (await testbed.call("PUT", "/v1/projects/crew/env/V0", {"value": "y"}))[0] == 200
    assert (await testbed.call("PUT", "/v1/projects/crew/env/NEW", {"value": "y"}))[0] == 409


async def test_a_variable_is_set_although_others_are_set_meanwhile(testbed, crew, secrets, monkeypatch):
    monkeypatch.setattr(conflicts, "LONGEST_PAUSE_SECONDS", 0)
    assert (await testbed.call("PUT", "/v1/projects/crew/env/TIDE", {"value": "x"}))[0] == 200
    patch, others = KubeClient.patch, [f"V{number}" for number in range(conflicts.MAX_ATTEMPTS - 1)]

    async def patch_late(client, kind, name, body):
        if others:
            await patch(
                client, kind, name, view.variable_patch(secrets[name], "crew", others.pop(), "x", NOW)
            )
        return await patch(client, kind, name, body)

    monkeypatch.setattr(KubeClient, "patch", patch_late)
    status, found, _ = await testbed.call("PUT", "/v1/projects/crew/env/MOON", {"value": "x"})
    assert status == 200, found
    (secret,) = secrets.values()
    assert len(secret["data"]) == conflicts.MAX_ATTEMPTS + 1
