"""Tests of tombstones, of the notes of data left to delete, and of lost claims."""

from contextlib import suppress
from pathlib import Path
from unittest.mock import ANY

import pytest
from sqlalchemy import select, text

from api.store.index import projects
from api.store.index.claims.claims import ClaimDenied, ClaimRequest, ClaimUnknown
from api.store.index.deletion import delete_project
from api.store.index.deletion.tombstones import delete_runs
from api.store.sql.schema import claims, remains, run_counts, runs, tombstones
from api.store.store import Store
from tests.unit.api.store import builders
from tests.unit.api.store.old_index import old_index
from tests.unit.api.store.power_cuts import Cutter, PowerCut


async def rows(store: Store, table, *columns) -> list[tuple]:
    async with store.database.read() as connection:
        found = await connection.execute(select(*(table.c[name] for name in columns)).order_by(*columns))
        return [tuple(row) for row in found]


def limit_batches(monkeypatch: pytest.MonkeyPatch, runs: int) -> None:
    """Delete at most `runs` runs per transaction."""
    for module in (delete_project, projects):
        monkeypatch.setattr(module, "RUNS_PER_TRANSACTION", runs)


async def test_removed_project_leaves_tombstones_in_batches(store: Store, monkeypatch) -> None:
    limit_batches(monkeypatch, 3)
    await builders.add_demo_project(store)
    names = sorted([await builders.claim_run(store)] + [await builders.create_run(store) for _ in range(6)])
    await store.run_writer.observe(builders.run(names[2], "Failed"), builders.NOW)
    await store.projects.remove("demo", "project-1", builders.later(60))
    assert [name for name, _ in await rows(store, tombstones, "name", "uid")] == names
    assert await rows(store, runs, "name") == await rows(store, claims, "run") == []
    assert await rows(store, run_counts, "project") == []
    left = [("build", "dep-a"), ("build", "dep-a.uid-of-dep-a"), *(("run", name) for name in names)]
    assert await rows(store, remains, "kind", "name") == left


async def test_name_executes_once_after_deletion(store: Store) -> None:
    await builders.add_demo_project(store)
    name = await builders.claim_run(store)
    await store.run_writer.observe(builders.run(name, "Succeeded"), builders.NOW)
    async with store.database.write() as connection:
        await delete_runs(connection, "crews", [name, "run-unknown"], builders.NOW)
    await store.run_writer.observe(builders.run(name, uid="another"), builders.NOW)
    assert await store.runs.get(name) is None
    asked = ClaimRequest("another", "pod", "nonce")
    assert isinstance(await store.claims.grant(name, asked, {}, builders.NOW), ClaimUnknown)
    assert (await store.runs.page(0, 10)).total == 0


async def test_claim_restored_from_object(store: Store) -> None:
    await builders.add_demo_project(store)
    status = {"claim": {"podUid": "pod", "time": "2026-11-21T10:00:07Z"}, "startTime": "2026-11-21T10:00:07Z"}
    await store.run_writer.observe(builders.run("run-a", "Running", **status), builders.NOW)
    for pod in ("pod", "another"):
        asked = ClaimRequest("run-uid", pod, "nonce")
        assert isinstance(await store.claims.grant("run-a", asked, {}, builders.NOW), ClaimDenied)
    assert not await store.claims.holds("run-a", "pod", "nonce")
    assert await store.claims.unwritten(9) == ()
    result = {"outcome": "succeeded", "output": "7"}
    await store.run_writer.observe(builders.run("run-a", "Succeeded", **status, result=result), builders.NOW)
    page = await store.events.read("run-a", 0, 9)
    assert [(event.id, event.type) for event in page.events] == [(1, "run.started"), (2, "run.completed")]
    assert page.events[0].data["deployment_id"] == "dep_a"


async def test_hidden_rows_of_old_schema_become_tombstones(
    tmp_path: Path, empty_database: str | None
) -> None:
    async with old_index(tmp_path, empty_database, "0004") as connection:
        for number, (hidden, withdrawn) in enumerate([(False, False), (True, False), (True, True)]):
            values = {"hidden": hidden, "withdrawn": withdrawn, "present": False, "cancel": False}
            texts = {"namespace": "crews", "name": f"run-{number}", "uid": "u", "project": "demo"}
            numbers = {"ord": number, "version": 1, "created_at": 1, "completed_at": 7_000_000}
            row = {**texts, "status": "succeeded", "input": "{}", **numbers, **values}
            columns = ", ".join(row)
            marks = ", ".join(f":{name}" for name in row)
            await connection.execute(text(f"insert into runs ({columns}) values ({marks})"), row)
            claim = {"namespace": "crews", "run": f"run-{number}", "granted_at": 1, "answer": "{}"}
            claim |= dict.fromkeys(("run_uid", "pod_uid", "nonce"), "x")
            claim |= {"written": True, "result_written": True}
            marks = ", ".join(f":{name}" for name in claim)
            await connection.execute(text(f"insert into claims ({', '.join(claim)}) values ({marks})"), claim)
    store = await Store.open(tmp_path, "crews", empty_database)
    assert await rows(store, runs, "name", "sealed") == [("run-0", False), ("run-2", False)]
    assert await rows(store, claims, "run") == [("run-0",), ("run-2",)]
    ended = builders.NOW.replace(year=1970, month=1, day=1, hour=0, minute=0, second=7, microsecond=0)
    assert await rows(store, tombstones, "name", "ended_at") == [("run-1", ended)]
    assert await rows(store, remains, "kind", "name") == [("run", "run-1")]
    await store.close()


async def test_interrupted_removal_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit_batches(monkeypatch, 2)
    for after in range(1, 9):
        store = await Store.open(tmp_path / str(after), "crews")
        await builders.add_demo_project(store)
        for _ in range(5):
            await builders.create_run(store)
        with monkeypatch.context() as patched:
            Cutter(after).patch(store, patched)
            with suppress(PowerCut):
                await store.projects.remove("demo", "project-1", builders.NOW)
        # The next list finds it: the row exists as long as any of its data is shown.
        if (await store.runs.page(0, 9)).total:
            assert await store.projects.resource_versions() == {"demo": ("project-1", ANY)}
        if await store.projects.resource_versions():
            await store.projects.observe(builders.project(uid="project-2"))
        assert (await store.runs.page(0, 9)).total == (await store.deployments.page("demo", 0, 9)).total == 0
        assert len(await rows(store, tombstones, "name")) == 5
        await store.close()
