"""The projection of Projects while the many runs of a deleted one are removed."""

import asyncio

import pytest

from api.projection import projections
from api.projection.list_watch import apply_list
from api.store.index import projects
from api.store.index.deletion import delete_project
from api.store.store import Store
from kube.client import Listing
from tests.unit.api.store import builders


def limit_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete one run per transaction."""
    for module in (delete_project, projects):
        monkeypatch.setattr(module, "RUNS_PER_TRANSACTION", 1)


async def uids(store: Store) -> dict[str, str]:
    return {name: uid for name, (uid, _) in (await store.projects.resource_versions()).items()}


async def test_other_projects_are_projected_during_a_removal(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(projects, "REMOVAL_WAIT_SECONDS", 0.05)
    await builders.add_demo_project(store)
    name = await builders.create_run(store)
    projection = projections.projects(store)
    listing = Listing([builders.project(uid="project-2").raw, builders.project("other", "3").raw], "99999")
    async with store.projects._removal_turn:
        for _ in range(2):
            await asyncio.wait_for(projection.delete("demo", "project-1"), 120)
        await asyncio.wait_for(apply_list(projection, listing), 120)
        assert await uids(store) == {"demo": "project-1", "other": "3"}
        assert await store.runs.get(name) is not None
        removal = store.projects.start_removal("demo", "project-1", builders.NOW)
    await removal
    # The task that waits for the removal may have stored the next project of the name already.
    assert (await uids(store)).get("demo") != "project-1"
    assert await store.runs.get(name) is None
    await apply_list(projection, listing)
    assert await uids(store) == {"demo": "project-2", "other": "3"}


async def test_a_project_created_again_is_stored_after_the_removal(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(projects, "REMOVAL_WAIT_SECONDS", 0.05)
    await builders.add_demo_project(store)
    async with store.projects._removal_turn:
        later = [builders.project(uid="project-2") for _ in range(2)]
        for project in later:
            await store.projects.observe(project)
        assert (await uids(store))["demo"] == "project-1"
    await store.projects._removals.wait()
    assert (await store.projects.resource_versions())["demo"] == (
        "project-2",
        int(later[-1].resource_version),
    )


async def test_a_project_deleted_again_is_not_stored_after_the_removal(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(projects, "REMOVAL_WAIT_SECONDS", 0.05)
    await builders.add_demo_project(store)
    async with store.projects._removal_turn:
        await store.projects.observe(builders.project(uid="project-2"))
        store.projects.start_removal("demo", "project-2", builders.NOW)
    await store.projects._removals.wait()
    assert await uids(store) == {}


async def test_concurrent_removals_of_a_project_are_one(store: Store, monkeypatch) -> None:
    batches = []
    delete_run_batch = projects.delete_run_batch

    async def counted(*arguments):
        batches.append(arguments[1].uid)
        return await delete_run_batch(*arguments)

    limit_batches(monkeypatch)
    monkeypatch.setattr(projects, "delete_run_batch", counted)
    await builders.add_demo_project(store)
    for _ in range(3):
        await builders.create_run(store)
    removals = [store.projects.remove("demo", "project-1", builders.NOW) for _ in range(3)]
    assert await asyncio.gather(*removals) == [True, True, True]
    assert batches == ["project-1"] * 4


async def test_closing_interrupts_a_removal_that_a_restart_continues(tmp_path, monkeypatch) -> None:
    limit_batches(monkeypatch)
    store = await Store.open(tmp_path, "crews")
    await builders.add_demo_project(store)
    for _ in range(5):
        await builders.create_run(store)
    await projections.projects(store).delete("demo", "project-1")
    await asyncio.wait_for(store.close(), 120)
    store = await Store.open(tmp_path, "crews")
    assert list(await store.projects.resource_versions()) == ["demo"]
    await apply_list(projections.projects(store), Listing([], "99999"))
    await store.projects.remove("demo", "project-1", builders.NOW)
    assert await store.projects.get("demo") is None
    assert (await store.runs.page(0, 9)).total == 0
    await store.close()
