"""SQL statements and apiserver calls of the two walks that every run takes: POST /v1/runs and the claim."""

import dataclasses
from typing import Any

from aiohttp import web

from api.services import SERVICES
from crds.kinds import RUN
from tests.testbed.apiserver import serving
from tests.unit.api.internal.conftest import (
    apiserver,
    bearer,
    kube,
    limits,
    objects,
    plans,
    pods,
    prices,
    reached,
)
from tests.unit.api.internal.test_runs import CLAIM, call_api
from tests.unit.api.store import builders
from tests.unit.api.store.statements import counted

__all__ = ["apiserver", "bearer", "kube", "limits", "objects", "plans", "pods", "prices", "reached"]

MAX_STATEMENTS_PER_POST = 8
"""Two are of the audit log, in the transaction of the row."""
MAX_STATEMENTS_PER_CLAIM = 13


async def test_creating_a_run_takes_few_statements_and_one_create(testbed: Any, monkeypatch: Any) -> None:
    created = []

    async def create(request: web.Request) -> web.Response:
        body = await request.json()
        body["metadata"] |= {
            "uid": "uid-of-run",
            "resourceVersion": "77",
            "namespace": "crews",
            "creationTimestamp": "2026-11-21T10:00:00Z",
        }
        created.append(body)
        return web.json_response(body, status=201)

    await testbed.add_project("demo", activeDeployment="dep-a")
    await testbed.add_deployment("dep-a", "demo")
    routes = [web.post(f"/apis/crewyard.dev/v1alpha1/namespaces/crews/{RUN.plural}", create)]
    async with serving(routes) as client:
        services = testbed.client.server.app[SERVICES]
        monkeypatch.setitem(
            testbed.client.server.app._state, SERVICES, dataclasses.replace(services, kube=client)
        )
        body = {"deployment": "demo", "input": {"topic": "ants"}}
        assert (await testbed.call("POST", "/v1/runs", body))[0] == 201  # fills the caches
        with counted() as statements:
            status, answer, _ = await testbed.call("POST", "/v1/runs", body)
    assert status == 201 and len(created) == 2
    assert len(statements) <= MAX_STATEMENTS_PER_POST, statements
    row = await testbed.store.runs.get(answer["data"]["id"].replace("_", "-", 1))
    assert row is not None and (row.uid, row.status) == ("uid-of-run", "pending")


async def test_claiming_a_run_takes_few_statements(pods: Any, store: Any, bearer: Any) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store, input={"topic": "ants"})
    with counted() as statements:
        status, decision = await call_api(pods, run, "claim", CLAIM, bearer(run))
    assert (status, decision["state"]) == (200, "granted")
    assert len(statements) <= MAX_STATEMENTS_PER_CLAIM, statements
