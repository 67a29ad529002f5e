"""The budget of a month at the API: refused runs, its use, and its record on the Project."""

import dataclasses
import json
from datetime import timedelta

import pytest
from aiohttp import web

from api.maintenance.record_budgets import BudgetRecorder
from api.prices import parse_prices
from api.services import SERVICES
from crds.kinds import PROJECT
from crds.names import ANNOTATION_MONTH_USE
from tests.testbed.apiserver import serving
from tests.unit.api.store.statements import counted
from tests.unit.api.v1.test_usage import account_all, add_finished_run

PRICES = parse_prices('{"currency": "EUR", "per_million_prompt_tokens": 10000}')
RUN = {"deployment": "crew", "input": {}}


@pytest.fixture
async def project(testbed):
    await testbed.add_project("crew", {"budget": {"month": {"tokens": 250}}}, activeDeployment="dep-a")
    await testbed.add_deployment("dep-a", "crew")


async def test_a_used_budget_refuses_runs_until_it_is_raised(testbed, project):
    await add_finished_run(testbed, "run-a", (200, 49))
    await account_all(testbed)
    # Without a cluster behind the API a run that is not refused cannot be created: 503.
    assert (await testbed.call("POST", "/v1/runs", RUN))[0] == 503
    await add_finished_run(testbed, "run-b", (1, 0))
    await account_all(testbed)
    for path in ("/v1/runs", "/v1/runs/run_a/rerun"):
        status, found, _ = await testbed.call("POST", path, RUN if path == "/v1/runs" else {})
        error = found["error"]
        assert (status, error["code"], error["details"]) == (409, "budget_exceeded", {"project": "crew"})
        assert "project crew has used 250 of 250 tokens of its budget for 2026-11" in error["message"]
    budget = (await testbed.get("/v1/projects/crew/usage?from=2026-01-01&to=2026-01-01"))["data"]["budget"]
    assert budget["exceeded"] and budget["message"] == error["message"]
    assert budget["tokens"] == {"used": 250, "limit": 250} and budget["cost"] == {"used": None, "limit": None}
    await testbed.update_spec("crew", budget={"month": {"tokens": 1000}})
    assert (await testbed.call("POST", "/v1/runs", RUN))[0] == 503


async def test_a_project_without_a_budget_has_none(testbed):
    await testbed.add_project("crew")
    found = (await testbed.get("/v1/projects/crew/usage"))["data"]
    assert (found["budget"], found["run_budget"]) == (None, None)


async def test_the_usage_has_the_budget_of_each_run(testbed):
    await testbed.add_project("crew", {"budget": {"run": {"tokens": 200}}})
    found = (await testbed.get("/v1/projects/crew/usage"))["data"]
    assert (found["budget"], found["run_budget"]) == (None, {"tokens": 200, "cost": None})


async def test_only_admins_set_a_budget(testbed, project):
    caller = testbed.create_key("deploy", projects=["crew"])
    body = {"budget": {"month": {"tokens": 10**9}}}
    status, found, _ = await testbed.call("PATCH", "/v1/projects/crew", body, bearer=caller)
    assert (status, found["error"]["details"]["field"]) == (403, "budget")


async def test_the_use_is_recorded_at_each_percent(testbed, project):
    patches = []

    async def patch(request):
        metadata = (await request.json())["metadata"]
        patches.append(json.loads(metadata["annotations"][ANNOTATION_MONTH_USE]))
        return web.json_response({})

    routes = [web.patch(f"/apis/crewyard.dev/v1alpha1/namespaces/crews/{PROJECT.plural}/crew", patch)]
    async with serving(routes) as kube:
        recorder = BudgetRecorder(testbed.store, kube, PRICES)
        now = testbed.clock[0]
        for run, tokens in (("run-a", 1), ("run-b", 1), ("run-c", 100), ("run-d", 200)):
            await add_finished_run(testbed, run, (tokens, 0))
            await account_all(testbed)
            await recorder.record_all(now)
            await recorder.record_all(now)
        assert [(one["tokens"], one["cost"]) for one in patches] == [(1, 0.01), (102, 1.02), (302, 3.02)]
        await testbed.update_spec("crew", budget={"month": {"tokens": 500}})
        await recorder.record_all(now)
        await recorder.record_all(now.replace(year=2027, month=1))
        assert patches[3:] == [
            {"month": "2026-11", "tokens": 302, "cost": 3.02},
            {"month": "2027-01", "tokens": 0, "cost": 0.0},
        ]


async def test_a_lost_record_is_written_again(testbed, project):
    found = {}

    async def patch(request):
        found.update((await request.json())["metadata"]["annotations"])
        return web.json_response({})

    routes = [web.patch(f"/apis/crewyard.dev/v1alpha1/namespaces/crews/{PROJECT.plural}/crew", patch)]
    async with serving(routes) as kube:
        recorder, now = BudgetRecorder(testbed.store, kube, PRICES), testbed.clock[0]
        await recorder.record_all(now)
        written = dict(found)
        # As `kubectl replace` does.
        found.clear()
        await recorder.record_all(now)
        assert written and found == {}
        await recorder.record_all(now + timedelta(minutes=10))
        assert found == written


async def test_a_budget_of_each_run_alone_is_not_recorded(testbed):
    await testbed.add_project("crew", {"budget": {"run": {"tokens": 250}}})
    with counted() as statements:
        # Without a cluster behind the API, a patch would be logged as failed and be tried again.
        recorder = BudgetRecorder(testbed.store, testbed.client.server.app[SERVICES].kube, PRICES)
        await recorder.record_all(testbed.clock[0])
    assert len(statements) == 1 and recorder._written == {}


async def test_many_budgets_are_read_by_three_statements(testbed):
    for name in ("a", "b", "c"):
        await testbed.add_project(name, {"budget": {"month": {"tokens": 250}}})
    patched = []

    async def patch(request):
        patched.append(request.match_info["name"])
        return web.json_response({})

    routes = [web.patch(f"/apis/crewyard.dev/v1alpha1/namespaces/crews/{PROJECT.plural}/{{name}}", patch)]
    async with serving(routes) as kube:
        with counted() as statements:
            await BudgetRecorder(testbed.store, kube, PRICES).record_all(testbed.clock[0])
    assert sorted(patched) == ["a", "b", "c"] and len(statements) == 3, statements


async def test_a_budget_of_cost_counts_by_the_prices(testbed, monkeypatch):
    app = testbed.client.server.app
    config = dataclasses.replace(app[SERVICES].config, prices=PRICES)
    monkeypatch.setitem(app._state, SERVICES, dataclasses.replace(app[SERVICES], config=config))
    await testbed.add_project("crew", {"budget": {"month": {"cost": 1.5}}}, activeDeployment="dep-a")
    await testbed.add_deployment("dep-a", "crew")
    await add_finished_run(testbed, "run-a", (150, 0))
    await account_all(testbed)
    status, found, _ = await testbed.call("POST", "/v1/runs", RUN)
    assert (status, found["error"]["code"]) == (409, "budget_exceeded")
    assert "1.50 of the cost 1.50" in found["error"]["message"]
