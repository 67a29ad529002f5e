"""Environment variables through the API: what a run could not start with is refused."""

import pytest

from kube.client import KubeClient

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
