"""A namespace in which the apiserver refuses calls stops the pruning and recovery of no other."""

from datetime import UTC, datetime

import pytest
from aiohttp import web
from sqlalchemy import update

from api.maintenance import prune_objects
from api.maintenance.retention import RetentionPolicy
from api.projection.recover import recover_all
from api.store.index.runs.runs import RunRequest
from api.store.sql.schema import runs
from tests.testbed.apiserver import serving
from tests.unit.api.store import builders

RUNS = "/apis/crewyard.dev/v1alpha1/namespaces/{namespace}/runs/{name}"
LATER = builders.later(3600)


@pytest.fixture
def deleted():
    return []


@pytest.fixture
async def kube(deleted):
    def refused(request):
        return request.match_info["namespace"] == "team-a"

    forbidden = {"reason": "Forbidden", "message": "cannot delete runs"}

    async def get(request):
        if refused(request):
            return web.json_response(forbidden, status=403)
        return web.json_response({"metadata": {"name": request.match_info["name"], "uid": "uid"}})

    async def delete(request):
        if refused(request):
            return web.json_response(forbidden, status=403)
        deleted.append(request.match_info["name"])
        return web.json_response({})

    async with serving([web.get(RUNS, get), web.delete(RUNS, delete)]) as found:
        yield found


async def end_run(store, seconds, namespace=None):
    """Create a run that ended some seconds after NOW, and whose object is in a namespace."""
    run = await builders.claim_run(store)
    ended = {"completionTime": builders.later(seconds).isoformat().replace("+00:00", "Z")}
    await store.run_writer.observe(builders.run(run, "Succeeded", **ended), builders.later(seconds))
    await move(store, run, namespace)
    return run


async def move(store, run, namespace):
    async with store.database.write() as connection:
        here = runs.c.name == run
        await connection.execute(update(runs).where(here).values(object_namespace=namespace))


@pytest.mark.parametrize("in_front", [1, 2, 3])
async def test_refused_runs_keep_no_run_of_another_namespace(store, kube, deleted, monkeypatch, in_front):
    monkeypatch.setattr(prune_objects, "BATCH_SIZE", 2)
    await builders.add_demo_project(store)
    for _ in range(in_front):
        await end_run(store, 5, "team-a")
    pruned = [await end_run(store, seconds) for seconds in (6, 7)]
    assert await prune_objects.prune_objects(store, kube, LATER, RetentionPolicy(10, 1)) == 2
    assert deleted == pruned
    assert len(await store.run_writer.present("team-a")) == in_front


async def test_a_refused_withdrawn_run_keeps_no_run_of_another_namespace(store, kube, deleted):
    await builders.add_demo_project(store)
    withdrawn = []
    for _ in range(2):
        name, _ = await store.runs.create(RunRequest("demo", "dep-a", {}), builders.NOW, None)
        await store.runs.withdraw(name, builders.NOW, object_absent=False)
        withdrawn.append(name)
    await move(store, withdrawn[0], "team-a")
    await recover_all(store, kube, datetime.now(UTC))
    assert deleted == withdrawn[1:]
