"""Ended Run objects without a row of their own are deleted after their TTL, except those executed before."""

import pytest
from aiohttp import web
from sqlalchemy import delete, insert

from api.maintenance import prune_objects
from api.maintenance.retention import RetentionPolicy
from api.projection import projections, stray_runs
from api.projection.list_watch import apply_list
from api.projection.stray_runs import StrayRuns
from api.store.sql.schema import runs, tombstones
from kube.client import Listing
from tests.testbed.apiserver import serving
from tests.unit.api.store import builders

RUN_PATH = "/apis/crewyard.dev/v1alpha1/namespaces/{namespace}/runs/{name}"
LATER = builders.later(3600)
ENDED = {"completionTime": "2026-11-21T10:00:05Z"}


@pytest.fixture
def answers():
    """HTTP status of a delete, by run."""
    return {}


@pytest.fixture
def deleted():
    return []


@pytest.fixture
async def kube(answers, deleted):
    async def handle(request):
        name = request.match_info["name"]
        deleted.append((name, (await request.json())["preconditions"]))
        return web.json_response({"reason": "Conflict"}, status=answers.get(name, 200))

    async with serving([web.delete(RUN_PATH, handle)]) as found:
        yield found


async def add_tombstone(store, name):
    async with store.database.write() as connection:
        await connection.execute(delete(runs).where(runs.c.name == name))
        row = {"namespace": "crews", "name": name, "uid": "run-uid", "ended_at": builders.NOW}
        await connection.execute(insert(tombstones).values(row))


async def list_runs(store, strays, *views):
    await apply_list(projections.runs(store, strays=strays), Listing([view.raw for view in views], "9000000"))


def prune(store, kube, strays, run_ttl=60, now=LATER):
    return prune_objects.prune_strays(store, kube, strays, now, RetentionPolicy(7200, run_ttl))


async def test_a_tombstone_and_a_row_of_another_uid_leave_no_object(store, kube, deleted):
    await builders.add_demo_project(store)
    strays, executed = StrayRuns(), await builders.claim_run(store)
    await store.run_writer.observe(builders.run(executed, "Succeeded", **ENDED), builders.NOW)
    await add_tombstone(store, "run-old")
    old = builders.run("run-old", "Failed", uid="old", **ENDED)
    recreated = builders.run(executed, "Canceled", uid="another", **ENDED)
    own = builders.run("run-own", "Failed", uid="own", **ENDED)
    await add_tombstone(store, "run-live")
    live = builders.run("run-live", "Running", uid="live")
    await add_tombstone(store, "run-again")
    error = {"reason": "AlreadyExecuted", "message": "it ran"}
    again = builders.run("run-again", "Failed", uid="again", error=error, **ENDED)
    await list_runs(store, strays, old, recreated, own, live, again)
    assert await prune(store, kube, strays) == 2
    expected = [
        (view.name, {"uid": view.uid, "resourceVersion": view.resource_version}) for view in (old, recreated)
    ]
    assert sorted(deleted) == sorted(expected)
    assert await prune(store, kube, strays) == 0


async def test_a_run_executed_before_stays_as_long_as_its_project(store, kube):
    await add_tombstone(store, "run-old")
    error = {"reason": "AlreadyExecuted", "message": "it ran"}

    def view(owners):
        found = builders.run("run-old", "Failed", error=error, **ENDED)
        found.raw["metadata"]["ownerReferences"] = owners
        return found

    strays = StrayRuns()
    await list_runs(store, strays, view([]))
    await list_runs(store, strays, view(builders.owned("project-1")))
    assert await prune(store, kube, strays) == 0
    await list_runs(store, strays, view([]))
    assert await prune(store, kube, strays) == 1


async def test_a_stray_run_stays_for_the_ttl_of_its_project(store, kube):
    await store.projects.observe(builders.project(retention={"runs": "30m"}))
    await add_tombstone(store, "run-old")
    strays = StrayRuns()
    await list_runs(store, strays, builders.run("run-old", "Failed", **ENDED))
    assert await prune(store, kube, strays, now=builders.later(1700)) == 0
    assert await prune(store, kube, strays, now=builders.later(1900)) == 1


async def test_a_changed_stray_run_is_left_to_the_next_list(store, kube, answers, deleted):
    await add_tombstone(store, "run-old")
    answers["run-old"] = 409
    strays = StrayRuns()
    await list_runs(store, strays, builders.run("run-old", "Failed", **ENDED))
    assert [await prune(store, kube, strays) for _ in range(2)] == [0, 0]
    assert len(deleted) == 1
    answers.clear()
    await list_runs(store, strays, builders.run("run-old", "Failed", **ENDED))
    assert await prune(store, kube, strays) == 1


async def test_stray_runs_are_noted_and_deleted_in_bounded_numbers(store, kube, monkeypatch):
    monkeypatch.setattr(prune_objects, "BATCH_SIZE", 2)
    monkeypatch.setattr(stray_runs, "MAX_STRAY_RUNS", 3)
    views = [builders.run(f"run-{number}", "Failed", uid=f"uid-{number}", **ENDED) for number in range(5)]
    for view in views:
        await add_tombstone(store, view.name)
    strays = StrayRuns()
    await list_runs(store, strays, *views)
    assert [await prune(store, kube, strays) for _ in range(3)] == [2, 1, 0]


async def test_a_deleted_stray_run_is_not_deleted_again(store, kube, deleted):
    await add_tombstone(store, "run-old")
    strays, view = StrayRuns(), builders.run("run-old", "Failed", **ENDED)
    await list_runs(store, strays, view)
    await projections.runs(store, strays=strays).delete(view.name, view.uid)
    assert await prune(store, kube, strays) == 0
    assert deleted == []
