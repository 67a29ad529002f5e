"""`RunWriter.link`: the short way from a created object to its row writes what `observe` would write."""

import dataclasses
from typing import Any

import pytest

from api.store.index.runs.runs import RunRequest
from api.store.store import Store
from tests.unit.api.store import builders

REQUEST = RunRequest("demo", "dep-a", {"topic": "ants"}, timeout="90s")


async def accepted(store: Store) -> str:
    """Insert a row without an object; return its name."""
    await builders.add_demo_project(store)
    name, _ = await store.runs.create(REQUEST, builders.NOW, None)
    return name


async def columns(store: Store, name: str) -> dict[str, Any]:
    """Return the row without what differs between any two runs."""
    row = await store.runs.get(name)
    assert row is not None
    return {**dataclasses.asdict(row), "name": None, "ord": None}


async def test_linked_row_equals_an_observed_one(store: Store) -> None:
    linked, observed = await accepted(store), await accepted(store)
    await store.run_writer.link(builders.run(linked), builders.NOW)
    await store.run_writer.observe(builders.run(observed), builders.NOW)
    assert await columns(store, linked) == await columns(store, observed)
    assert (await columns(store, linked))["uid"] == "run-uid"
    assert (await store.runs.page(0, 10, project="demo", statuses=["pending"])).total == 2


@pytest.mark.parametrize(
    ("phase", "status"),
    [
        ("Running", {"startTime": "2026-11-21T10:00:05Z"}),
        ("Succeeded", {"completionTime": "2026-11-21T10:00:09Z", "durationMs": 5}),
        ("Pending", {"deployment": "dep-b"}),
        ("Pending", {"claim": {"podUid": "pod", "time": "2026-11-21T10:00:05Z"}}),
    ],
    ids=["running", "ended", "moved", "claimed"],
)
async def test_other_objects_are_observed(store: Store, phase: str, status: dict[str, Any]) -> None:
    linked, observed = await accepted(store), await accepted(store)
    await store.run_writer.link(builders.run(linked, phase, **status), builders.NOW)
    await store.run_writer.observe(builders.run(observed, phase, **status), builders.NOW)
    assert await columns(store, linked) == await columns(store, observed)
    for value in ("pending", "running", "succeeded"):
        total = (await store.runs.page(0, 10, project="demo", statuses=[value])).total
        assert total == 2 * (value == (await columns(store, observed))["status"])


async def test_faster_watch_keeps_its_newer_version(store: Store) -> None:
    name = await accepted(store)
    created = builders.run(name)
    await store.run_writer.observe(builders.run(name, "Running"), builders.NOW)
    await store.run_writer.link(created, builders.NOW)
    assert (await columns(store, name))["status"] == "running"


async def test_object_of_another_uid_changes_nothing(store: Store) -> None:
    name = await accepted(store)
    await store.run_writer.link(builders.run(name), builders.NOW)
    await store.run_writer.link(builders.run(name, uid="other-uid"), builders.NOW)
    assert (await columns(store, name))["uid"] == "run-uid"


async def test_withdrawn_run_stays_withdrawn_and_its_object_is_found(store: Store) -> None:
    name = await accepted(store)
    await store.runs.withdraw(name, builders.NOW, object_absent=False)
    await store.run_writer.link(builders.run(name), builders.NOW)
    assert await store.runs.get(name) is None
    withdrawn, _ = await store.runs.unsettled(builders.later(60))
    assert [run for run, *_ in withdrawn] == [name]
    assert (await store.runs.page(0, 10, project="demo")).total == 0
