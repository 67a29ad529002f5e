"""What goes leaves a tombstone and a note of what is left to delete; a lost claim is not given anew."""

from contextlib import suppress
from pathlib import Path
from unittest.mock import ANY

import pytest
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import create_async_engine

from api.store.backend import INDEX
from api.store.index.claims.claims import Asked, Denied, Unknown
from api.store.index.deletion import delete_project
from api.store.index.deletion import tombstones as burial
from api.store.sql.migrate import migrate, migrate_postgres
from api.store.sql.schema import claims, remains, run_counts, runs, tombstones
from api.store.store import Store
from tests.unit.api.store import builders
from tests.unit.api.store.power_cuts import Cut, Cutter


async def rows(store: Store, table, *columns) -> list[tuple]:
    async with store.database.read() as connection:
        found = await connection.execute(select(*(table.c[name] for name in columns)).order_by(*columns))
        return [tuple(row) for row in found]


async def test_runs_of_a_removed_project_become_tombstones_in_batches(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(delete_project, "BATCH", 3)
    await builders.yard(store)
    names = sorted([await builders.claimed(store)] + [await builders.accepted(store) for _ in range(6)])
    await store.record.observe(builders.run(names[2], "Failed"), builders.NOW)
    await store.projects.remove("demo", "project-1", builders.later(60))
    assert [name for name, _ in await rows(store, tombstones, "name", "uid")] == names
    assert await rows(store, runs, "name") == await rows(store, claims, "run") == []
    assert await rows(store, run_counts, "project") == []
    left = [("build", "dep-a"), ("build", "dep-a.uid-of-dep-a"), *(("run", name) for name in names)]
    assert await rows(store, remains, "kind", "name") == left


async def test_a_name_executes_once_also_when_its_record_is_gone(store: Store) -> None:
    await builders.yard(store)
    name = await builders.claimed(store)
    await store.record.observe(builders.run(name, "Succeeded"), builders.NOW)
    async with store.database.write() as connection:
        await burial.bury(connection, "crews", [name, "run-unknown"], builders.NOW)
    await store.record.observe(builders.run(name, uid="another"), builders.NOW)
    assert await store.runs.get(name) is None
    asked = Asked("another", "pod", "nonce")
    assert isinstance(await store.claims.ask(name, asked, {}, builders.NOW), Unknown)
    assert (await store.runs.page(0, 10)).total == 0


async def test_a_claim_that_only_the_object_knows_is_not_given_once_more(store: Store) -> None:
    await builders.yard(store)
    status = {"claim": {"podUid": "pod", "time": "2026-11-21T10:00:07Z"}, "startTime": "2026-11-21T10:00:07Z"}
    await store.record.observe(builders.run("run-a", "Running", **status), builders.NOW)
    for pod in ("pod", "another"):
        asked = Asked("run-uid", pod, "nonce")
        assert isinstance(await store.claims.ask("run-a", asked, {}, builders.NOW), Denied)
    assert not await store.claims.holds("run-a", "pod", "nonce")
    assert await store.claims.unwritten(9) == ()
    result = {"outcome": "succeeded", "output": "7"}
    await store.record.observe(builders.run("run-a", "Succeeded", **status, result=result), builders.NOW)
    page = await store.events.read("run-a", 0, 9)
    assert [(event.id, event.type) for event in page.events] == [(1, "run.started"), (2, "run.completed")]
    assert page.events[0].data["deployment_id"] == "dep_a"


async def test_hidden_rows_of_the_schema_before_become_tombstones(
    tmp_path: Path, empty_database: str | None
) -> None:
    if empty_database is None:
        migrate(tmp_path / INDEX, "0004")
        url = f"sqlite+aiosqlite:///{tmp_path / INDEX}"
    else:
        await migrate_postgres(empty_database, "0004")
        url = empty_database
    engine = create_async_engine(url)
    async with engine.begin() as connection:
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
    await engine.dispose()
    store = await Store.open(tmp_path, "crews", empty_database)
    assert await rows(store, runs, "name", "sealed") == [("run-0", False), ("run-2", False)]
    assert await rows(store, claims, "run") == [("run-0",), ("run-2",)]
    ended = builders.NOW.replace(year=1970, month=1, day=1, hour=0, minute=0, second=7, microsecond=0)
    assert await rows(store, tombstones, "name", "ended_at") == [("run-1", ended)]
    assert await rows(store, remains, "kind", "name") == [("run", "run-1")]
    await store.close()


async def test_a_removal_that_is_cut_short_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delete_project, "BATCH", 2)
    for after in range(1, 9):
        store = await Store.open(tmp_path / str(after), "crews")
        await builders.yard(store)
        for _ in range(5):
            await builders.accepted(store)
        with monkeypatch.context() as patched:
            Cutter(after).patch(store, patched)
            with suppress(Cut):
                await store.projects.remove("demo", "project-1", builders.NOW)
        # What the next list would find: the row is there as long as anything of it is shown.
        if (await store.runs.page(0, 9)).total:
            assert await store.projects.known() == {"demo": ("project-1", ANY)}
        if await store.projects.known():
            await store.projects.observe(builders.project(uid="project-2"))
        assert (await store.runs.page(0, 9)).total == (await store.deployments.page("demo", 0, 9)).total == 0
        assert len(await rows(store, tombstones, "name")) == 5
        await store.close()
