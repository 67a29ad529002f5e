"""Tests of run rows: created once, updated from their objects, counted, ended once."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.store.errors import StoreConflict
from api.store.index.idempotency import Idempotency
from api.store.index.runs.runs import RunRequest
from api.store.store import Store
from crds import names
from kube.client import decode
from tests.unit.api.store import builders

REQUEST = RunRequest("demo", "dep-a", {"topic": "ants"})
USE = Idempotency("key-1", "abc", "hash-of-body")


async def test_idempotency_key_creates_one_run(store: Store) -> None:
    await builders.add_demo_project(store)
    first, made = await store.runs.create(REQUEST, builders.NOW, USE)
    again, made_again = await store.runs.create(REQUEST, builders.later(60), USE)
    assert again == first and made is not None and made_again is None
    assert made.row == await store.runs.get(first)
    assert (await store.runs.page(0, 10)).total == 1


async def test_idempotency_key_scope_and_expiry(store: Store) -> None:
    await builders.add_demo_project(store)
    first, _ = await store.runs.create(REQUEST, builders.NOW, USE)
    with pytest.raises(StoreConflict):
        await store.runs.create(REQUEST, builders.NOW, Idempotency("key-1", "abc", "another body"))
    other, _ = await store.runs.create(REQUEST, builders.NOW, Idempotency("key-2", "abc", "another body"))
    late, _ = await store.runs.create(REQUEST, builders.NOW + timedelta(hours=25), USE)
    assert len({first, other, late}) == 3


async def test_names_sort_in_the_order_of_acceptance(store: Store) -> None:
    await builders.add_demo_project(store)
    names = [(await store.runs.create(REQUEST, builders.NOW, None))[0] for _ in range(20)]
    assert names == sorted(names)
    page = await store.runs.page(0, 20)
    assert [row.name for row in page.items] == names[::-1]


async def test_run_of_kubectl(store: Store) -> None:
    await builders.add_demo_project(store)
    spec = {"deployment": "dep-a", "input": {"topic": "bees"}, "timeout": "90s"}
    await store.run_writer.observe(builders.run("run-by-hand", spec=spec), builders.NOW)
    row = await store.runs.get("run-by-hand")
    assert row is not None
    assert (row.project, row.deployment, row.status, row.input) == (
        "demo",
        "dep-a",
        "pending",
        {"topic": "bees"},
    )
    assert (await store.runs.page(0, 10, project="demo")).total == 1


SPEC = {"project": "demo", "deployment": "dep-a"}
QUEUED = [{"type": "Admitted", "status": "False", "reason": "Queued", "message": "2 run at once"}]


@pytest.mark.parametrize(
    ("changed", "older"),
    [
        ({"phase": "Running", "startTime": "2026-11-21T10:00:05Z"}, {}),
        ({"spec": {**SPEC, "cancel": True}}, {}),
        ({}, {"spec": {**SPEC, "cancel": True}}),
        ({}, {"deployment": "dep-b"}),
        ({}, {"conditions": QUEUED}),
        ({}, {"phase": "Failed", "completionTime": "2026-11-21T10:00:03Z"}),
    ],
)
async def test_older_version_is_ignored(store: Store, changed: dict[str, Any], older: dict[str, Any]) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    older_run = builders.run(run, **older)
    await store.run_writer.observe(builders.run(run, **changed), builders.NOW)
    before = await store.runs.get(run), await store.run_writer.present()
    await store.run_writer.observe(older_run, builders.NOW)
    assert (await store.runs.get(run), await store.run_writer.present()) == before
    # The same change in a newer version is stored.
    newer_run = builders.run(run, **older)
    await store.run_writer.observe(newer_run, builders.NOW)
    assert (await store.run_writer.present())[run] == ("run-uid", int(newer_run.resource_version))


async def test_an_ended_row_never_changes(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    result = {"outcome": "succeeded", "durationMs": 1500, "output": '{"answer": 42}'}
    ended = {"completionTime": "2026-11-21T10:00:03Z", "durationMs": 1500, "result": result}
    await store.run_writer.observe(builders.run(run, "Succeeded", **ended), builders.NOW)
    before = await store.runs.get(run)
    await store.run_writer.observe(builders.run(run, "Failed", durationMs=9), builders.NOW)
    await store.run_writer.mark_deleted(run, "run-uid", builders.later(99))
    assert await store.runs.get(run) == before
    assert before is not None
    assert (before.output, before.duration_ms) == ({"answer": 42}, 1500)


async def test_deleted_object_cancels_run(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    await store.run_writer.mark_deleted(run, "another-uid", builders.later(9))
    assert (await store.runs.get(run)).status == "running"  # type: ignore[union-attr]
    await store.run_writer.mark_deleted(run, "run-uid", builders.later(9))
    row = await store.runs.get(run)
    assert row is not None
    assert (row.status, row.error, row.duration_ms) == (
        "canceled",
        {"reason": "Deleted", "message": "the Run object was deleted before the run had ended"},
        8000,
    )


async def test_waiting_reason(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    conditions = [
        {"type": "Succeeded", "status": "Unknown", "reason": "Pending", "message": "wait"},
        {"type": "Admitted", "status": "False", "reason": "Queued", "message": "2 run at once"},
    ]
    await store.run_writer.observe(builders.run(run, conditions=conditions), builders.NOW)
    row = await store.runs.get(run)
    assert row is not None
    assert row.waiting == {"reason": "Queued", "message": "2 run at once", "since": None}


async def test_prunable(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    assert await store.runs.prunable(builders.later(9999), 10) == ()
    ended = builders.run(run, "Failed", completionTime="2026-11-21T10:00:30Z")
    await store.run_writer.observe(ended, builders.NOW)
    assert await store.runs.prunable(builders.later(10), 10) == ()
    expected = (run, "run-uid", int(ended.resource_version), None)
    assert await store.runs.prunable(builders.later(100), 10) == (expected,)
    await store.run_writer.mark_deleted(run, "run-uid", builders.later(100))
    assert await store.runs.prunable(builders.later(100), 10) == ()


async def test_the_object_of_a_smoke_run_stays_until_its_deployment_ends(store: Store) -> None:
    await builders.add_demo_project(store)
    name = names.smoke_run("uid-of-dep-b")
    ended = {"completionTime": "2026-11-21T10:00:30Z", "deployment": "dep-b"}
    spec = {"project": "demo", "deployment": "dep-b"}
    await store.deployments.observe(builders.deployment("dep-b", "Building"))
    await store.run_writer.observe(builders.run(name, "Succeeded", spec=spec, **ended), builders.NOW)
    # The controller was away since.
    assert await store.runs.prunable(builders.later(9999), 10) == ()
    await store.deployments.observe(builders.deployment("dep-b", "Active"))
    assert [found[0] for found in await store.runs.prunable(builders.later(9999), 10)] == [name]


async def test_unsettled_runs(store: Store) -> None:
    await builders.add_demo_project(store)
    lost, _ = await store.runs.create(REQUEST, builders.NOW, None)
    taken, _ = await store.runs.create(REQUEST, builders.NOW, USE)
    await store.runs.withdraw(taken, builders.NOW, object_absent=False)
    whole = await builders.create_run(store)
    withdrawn, accepted = await store.runs.unsettled(builders.later(1))
    assert (withdrawn, [row.name for row in accepted]) == ([(taken, builders.NOW, None)], [lost])
    await store.runs.mark_object_absent(taken)
    await store.run_writer.observe(builders.run(lost, uid="other"), builders.NOW)
    assert await store.runs.unsettled(builders.later(1)) == ([], [])
    assert {row.name for row in (await store.runs.page(0, 9)).items} == {lost, whole}
    # The idempotency key of the withdrawn run may be used again.
    assert (await store.runs.create(REQUEST, builders.NOW, USE))[1]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "gone"])),
        max_size=25,
    )
)
async def test_totals_match_lists(
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
    engine: str,
    steps: list[tuple[int, str]],
) -> None:
    place: Path = tmp_path_factory.mktemp("totals")
    url = None if engine == "sqlite" else request.getfixturevalue("postgres").database("filled")
    store = await Store.open(place, "crews", url)
    try:
        await builders.add_demo_project(store)
        for number, phase in steps:
            name = f"run-number-{number}"
            if phase == "gone":
                await store.run_writer.mark_deleted(name, "run-uid", builders.NOW)
            else:
                await store.run_writer.observe(builders.run(name, phase), builders.NOW)
        for status in (None, "pending", "running", "succeeded", "failed", "canceled"):
            for deployment in (None, "dep-a", "dep-b"):
                chosen = None if status is None else [status]
                page = await store.runs.page(0, 100, "demo", deployment, chosen)
                assert page.total == len(page.items)
    finally:
        await store.close()


@pytest.mark.parametrize("levels", [300, 930, 938, 941, 960, 5000])
async def test_deeply_nested_values(store: Store, levels: int) -> None:
    await builders.add_demo_project(store)
    deep = decode(b'{"a":' * levels + b"1" + b"}" * levels)
    spec = {"project": "demo", "deployment": "dep-a", "input": deep}
    await store.run_writer.observe(builders.run("run-made-by-others", spec=spec), builders.NOW)
    row = await store.runs.get("run-made-by-others")
    assert row is not None and row.input is None
    run = await builders.claim_run(store)
    text = "[" * levels + "]" * levels
    reported = {"result": {"outcome": "succeeded", "output": text}, "completionTime": "2026-11-21T10:00:03Z"}
    await store.run_writer.observe(builders.run(run, "Succeeded", **reported), builders.later(3))
    ended = await store.runs.get(run)
    assert ended is not None and (ended.status, ended.output) == ("succeeded", None)


@pytest.mark.parametrize("count", [0, 1, 7])
async def test_pages_from_both_ends(store: Store, count: int) -> None:
    await builders.add_demo_project(store)
    for number in range(count):
        await store.run_writer.observe(builders.run(f"run-number-{number}"), builders.NOW)
    newest_first = [f"run-number-{number}" for number in reversed(range(count))]
    for limit in range(1, count + 2):
        for offset in range(count + 2):
            page = await store.runs.page(offset, limit, project="demo")
            assert [row.name for row in page.items] == newest_first[offset : offset + limit]
            assert page.total == count


async def test_a_run_of_kubectl_has_the_trace_and_the_admission_of_its_object(store):
    await builders.add_demo_project(store)
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for name, annotation, expected in (("run-a", parent, parent), ("run-b", "wrong", None)):
        admitted = {"type": "Admitted", "status": "True", "lastTransitionTime": "2026-11-21T10:00:07Z"}
        seen = builders.run(name, uid=f"uid-of-{name}", conditions=[admitted])
        seen.metadata["annotations"] = {"crewyard.dev/traceparent": annotation}
        await store.run_writer.observe(seen, builders.NOW)
        row = await store.runs.get(name)
        assert row is not None
        assert (row.traceparent, row.admitted_at) == (expected, builders.NOW.replace(second=7, microsecond=0))
