"""Tests of the SQLite engine: durability, locks, errors while it is unavailable."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from api.store.backend import INDEX
from api.store.errors import StoreUnavailable
from api.store.sql import sqlite_driver
from api.store.store import Store
from tests.unit.api.store import builders


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(tmp_path / "data", "crews")
    yield opened
    await opened.close()


async def test_durability_settings(store: Store) -> None:
    async with store.database.write() as connection:
        pragmas = {
            name: (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


@pytest.mark.parametrize("restored", [False, True])
async def test_first_reader_does_not_wait_for_another(tmp_path: Path, restored: bool) -> None:
    path = tmp_path / INDEX
    if restored:
        await (await Store.open(tmp_path, "crews")).close()
        with closing(sqlite3.connect(path)) as file:
            file.execute("PRAGMA journal_mode = DELETE")
    store = await Store.open(tmp_path, "crews")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM projects").fetchall()
        assert await store.projects.get("demo") is None
    await store.close()


async def test_durable_and_fast_commits(store: Store) -> None:
    async def safety(durable: bool) -> int:
        async with store.database.brief_write(durable=durable) as connection:
            return int((await connection.exec_driver_sql("PRAGMA synchronous")).scalar_one())

    assert [await safety(durable) for durable in (True, False, False, True)] == [2, 1, 1, 2]
    async with store.database.write() as connection:
        assert (await connection.exec_driver_sql("PRAGMA synchronous")).scalar_one() == 2


async def test_generation_changes_with_each_write(store: Store) -> None:
    before = store.database.generation
    async with store.database.brief_write(durable=False):
        assert store.database.generation is None
    between = store.database.generation
    with pytest.raises(ZeroDivisionError):
        async with store.database.write():
            raise ZeroDivisionError
    assert len({before, between, store.database.generation, None}) == 4


@pytest.mark.parametrize("brief", [True, False])
async def test_canceled_writer_frees_the_index(store: Store, brief: bool) -> None:
    async def write(number: int) -> None:
        transaction = store.database.brief_write() if brief else store.database.write()
        async with transaction as connection:
            # Two rows: half a transaction would show.
            for sequence in ("m", "n"):
                await connection.exec_driver_sql(
                    "INSERT INTO sequences VALUES ('test', ?, ?)", (f"{sequence}{number}", number)
                )

    committed = []
    for pause in range(20):
        task = asyncio.create_task(write(pause))
        for _ in range(pause):
            await asyncio.sleep(0)
        task.cancel()
        [outcome] = await asyncio.gather(task, return_exceptions=True)
        assert outcome is None or isinstance(outcome, asyncio.CancelledError)
        if outcome is None:
            committed.append(pause)
    await write(20)
    async with store.database.read() as connection:
        query = "SELECT name, value FROM sequences WHERE namespace = 'test'"
        found = dict((await connection.exec_driver_sql(query)).all())
    assert 0 not in committed and found.keys() >= {"m20", "n20"}
    stored = {number for number in range(21) if f"m{number}" in found}
    # A canceled commit may still succeed; an uncanceled one must.
    assert stored >= {*committed, 20} and 0 not in stored
    assert found == {f"{sequence}{number}": number for number in stored for sequence in ("m", "n")}


async def test_foreign_lock_times_out_and_readers_continue(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await builders.add_demo_project(store)
    monkeypatch.setattr(sqlite_driver, "LOCK_TIMEOUT_SECONDS", 0.2)
    other = sqlite3.connect(tmp_path / "data" / INDEX, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    async with asyncio.timeout(60):
        with pytest.raises(StoreUnavailable):
            await store.ready()
    assert (await store.projects.page(0, 1)).total == 1
    other.execute("ROLLBACK")
    other.close()
    monkeypatch.setattr(sqlite_driver, "LOCK_TIMEOUT_SECONDS", 60.0)
    await store.ready()


async def test_unusable_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable):
        await Store.open(tmp_path / "file" / "data", "crews")


async def test_directory_lock(tmp_path: Path) -> None:
    first = await Store.open(tmp_path, "crews")
    with pytest.raises(StoreUnavailable, match="another process"):
        await Store.open(tmp_path, "crews")
    await first.close()
    await (await Store.open(tmp_path, "crews")).close()
