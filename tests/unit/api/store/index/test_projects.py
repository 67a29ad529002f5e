"""Tests of project and deployment rows: activation, removal, recreation."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from api.store.errors import Missing
from api.store.store import Store
from tests.unit.api.store import builders


async def statuses(store: Store) -> dict[str, str]:
    return {row.name: row.status for row in (await store.deployments.page("demo", 0, 100)).items}


async def test_one_active_during_activation(store: Store) -> None:
    await store.projects.observe(builders.project(active="dep-a"))
    await store.deployments.observe(builders.deployment("dep-a", "Active"))
    await store.deployments.observe(builders.deployment("dep-b", "Building"))
    assert await statuses(store) == {"dep-a": "active", "dep-b": "building"}
    await store.projects.observe(builders.project(active="dep-b"))
    assert await statuses(store) == {"dep-a": "superseded", "dep-b": "active"}
    await store.deployments.observe(builders.deployment("dep-b", "Active"))
    await store.deployments.observe(builders.deployment("dep-a", "Superseded"))
    assert await statuses(store) == {"dep-a": "superseded", "dep-b": "active"}
    active = await store.deployments.page("demo", 0, 10, status="active")
    assert [row.name for row in active.items] == ["dep-b"]
    superseded = await store.deployments.page("demo", 0, 10, status="superseded")
    assert ([row.name for row in superseded.items], superseded.total) == (["dep-a"], 1)


async def test_deployment_seen_before_its_project(store: Store) -> None:
    await store.projects.observe(builders.project())
    await store.deployments.observe(builders.deployment("dep-a", "Building"))
    moment = "2026-11-21T11:00:00Z"
    await store.deployments.observe(builders.deployment("dep-a", "Active", activatedAt=moment))
    assert await statuses(store) == {"dep-a": "building"}
    await store.projects.observe(builders.project(active="dep-a"))
    assert await statuses(store) == {"dep-a": "active"}
    later = "2026-11-21T11:00:00.000001Z"
    await store.deployments.observe(builders.deployment("dep-b", "Active", activatedAt=later))
    assert await statuses(store) == {"dep-a": "active", "dep-b": "building"}


async def test_activated_at_is_kept(store: Store) -> None:
    await store.projects.observe(builders.project())
    await store.deployments.observe(builders.deployment("dep-a", "Building"))
    await store.deployments.observe(builders.deployment("dep-b", "Building"))
    assert (await store.deployments.get("dep-a")).activated_at is None  # type: ignore[union-attr]
    await store.projects.observe(builders.project(active="dep-a"))
    await store.projects.observe(builders.project(active="dep-b"))
    row = await store.deployments.get("dep-a")
    assert row is not None
    assert (row.status, row.activated_at is None) == ("building", False)


async def test_newest_first_and_pages(store: Store) -> None:
    await store.projects.observe(builders.project())
    for number in range(5):
        await store.deployments.observe(builders.deployment(f"dep-{number}"))
    page = await store.deployments.page("demo", 1, 2)
    assert ([row.name for row in page.items], page.total) == (["dep-3", "dep-2"], 5)
    assert (await store.deployments.page("unknown", 0, 2)).total == 0


async def test_recreated_project_is_empty(store: Store) -> None:
    await builders.add_demo_project(store)
    old = await builders.claim_run(store)
    await store.projects.observe(builders.project(uid="project-2"))
    assert (await store.deployments.page("demo", 0, 10)).total == 0
    assert await store.deployments.get("dep-a") is None
    page = await store.runs.page(0, 10, project="demo")
    assert (page.total, page.items) == (0, ())
    assert await store.runs.get(old) is None
    assert not await store.claims.holds(old, "pod", "nonce")
    # Late events of the old project's objects change nothing.
    await store.deployments.observe(builders.deployment("dep-a"))
    await store.run_writer.observe(builders.run(old, "Running"), builders.NOW)
    await store.run_writer.observe(builders.run("run-late"), builders.NOW)
    assert await statuses(store) == {}
    assert (await store.runs.page(0, 10)).total == 0
    await store.projects.remove("demo", "project-1", builders.NOW)
    assert (await store.projects.get("demo")).uid == "project-2"  # type: ignore[union-attr]


async def test_repeated_removal_keeps_next_project(store: Store) -> None:
    await store.projects.observe(builders.project())
    await store.projects.remove("demo", "project-1", builders.NOW)
    await store.projects.observe(builders.project(uid="project-2"))
    await store.deployments.observe(builders.deployment(owner=None))
    upload = await store.uploads.create("demo", 4, None, builders.NOW, builders.later(60))

    async def chunks() -> AsyncIterator[bytes]:
        yield b"code"

    await store.receive(upload.id, chunks(), builders.NOW)
    # The watch reports the deletion that the request has handled already.
    await store.projects.remove("demo", "project-1", builders.later(1))
    kept = await store.uploads.get(upload.id)
    assert kept is not None
    assert kept.stored_at == builders.NOW
    assert await statuses(store) == {"dep-a": "superseded"}


async def test_late_upload_of_removed_project(store: Store) -> None:
    await store.projects.observe(builders.project())
    upload = await store.uploads.create("demo", 4, None, builders.NOW, builders.later(60))

    async def chunks() -> AsyncIterator[bytes]:
        yield b"co"
        await store.projects.remove("demo", "project-1", builders.NOW)
        await store.projects.observe(builders.project(uid="project-2"))
        yield b"de"

    with pytest.raises(Missing):
        await store.receive(upload.id, chunks(), builders.NOW)
    left = await store.uploads.get(upload.id)
    assert left is not None
    assert left.stored_at is None


async def test_late_event_of_removed_project(store: Store) -> None:
    late = builders.project()
    await store.projects.observe(builders.project())
    await store.projects.observe(late)
    await store.projects.observe(builders.project(uid="project-2"))
    await store.projects.observe(builders.project(uid="project-1"))
    assert (await store.projects.get("demo")).uid == "project-2"  # type: ignore[union-attr]


async def test_page_limited_to_key(store: Store) -> None:
    for name in ("one", "two", "three"):
        await store.projects.observe(builders.project(name, uid=f"uid-{name}"))
    page = await store.projects.page(0, 2)
    assert ([row.name for row in page.items], page.total) == (["three", "two"], 3)
    bound = await store.projects.page(0, 10, frozenset({"one", "elsewhere"}))
    assert ([row.name for row in bound.items], bound.total) == (["one"], 1)


async def test_change_between_read_and_wait_wakes(store: Store) -> None:
    await builders.add_demo_project(store)
    mark = store.deployments.mark()
    await store.projects.observe(builders.project(active="dep-b"))
    await asyncio.wait_for(store.deployments.wait(mark, 30), 20)
    mark = store.deployments.mark()
    waiting = asyncio.create_task(store.deployments.wait(mark, 30))
    await asyncio.sleep(0)
    await store.deployments.observe(builders.deployment("dep-b"))
    await asyncio.wait_for(waiting, 20)


async def test_a_run_that_named_a_project_before_there_was_one_is_not_of_it(store: Store) -> None:
    failed, later = (
        builders.run(name, "Failed", spec={"project": "demo"}) for name in ("run-early", "run-later")
    )
    other = builders.run("run-other", "Failed", spec={"project": "other"}, project="other")
    failed.raw["metadata"]["creationTimestamp"] = "2026-11-21T09:59:59Z"
    for run in (failed, later, other):
        del run.raw["metadata"]["ownerReferences"], run.raw["status"]["deployment"]
        await store.run_writer.observe(run, builders.NOW)
    assert (await store.runs.page(0, 10, project="demo")).total == 2
    await store.projects.observe(builders.project())
    listed = await store.runs.page(0, 10, project="demo")
    assert ([row.name for row in listed.items], listed.total) == (["run-later"], 1)
    # Its object is still there for some minutes.
    failed.raw["metadata"]["resourceVersion"] = "99999"
    await store.run_writer.observe(failed, builders.NOW)
    assert await store.runs.get("run-early") is None
    assert (await store.runs.page(0, 10, project="other")).total == 1
