"""The store in a directory: what is on disk, and what it says when it cannot answer."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.store.backend import INDEX
from api.store.errors import StoreUnavailable
from api.store.store import Store
from tests.unit.api.store import builders as some


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(tmp_path / "data", "crews")
    yield opened
    await opened.close()


async def test_commits_survive_the_loss_of_power(store: Store) -> None:
    async with store.database.write() as connection:
        pragmas = {
            name: (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


async def test_what_is_not_durable_does_not_wait_for_the_disk_and_the_next_durable_does(store: Store) -> None:
    async def safety(durable: bool) -> int:
        async with store.database.brief_write(durable=durable) as connection:
            return int((await connection.exec_driver_sql("PRAGMA synchronous")).scalar_one())

    assert [await safety(durable) for durable in (True, False, False, True)] == [2, 1, 1, 2]
    async with store.database.write() as connection:
        assert (await connection.exec_driver_sql("PRAGMA synchronous")).scalar_one() == 2


async def test_a_change_begins_a_generation_and_there_is_none_while_it_is_made(store: Store) -> None:
    before = store.database.generation
    async with store.database.brief_write(durable=False):
        assert store.database.generation is None
    between = store.database.generation
    with pytest.raises(ZeroDivisionError):
        async with store.database.write():
            raise ZeroDivisionError
    assert len({before, between, store.database.generation, None}) == 4


@pytest.mark.parametrize("brief", [True, False])
async def test_who_gives_up_while_writing_leaves_the_index_to_the_next(store: Store, brief: bool) -> None:
    async def write(number: int) -> None:
        transaction = store.database.brief_write() if brief else store.database.write()
        async with transaction as connection:
            await connection.exec_driver_sql(
                "INSERT INTO sequences VALUES ('test', 'n', ?) ON CONFLICT DO UPDATE SET value = value + 1",
                (number,),
            )

    for pause in range(20):
        task = asyncio.create_task(write(pause))
        for _ in range(pause):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await write(0)
    async with store.database.read() as connection:
        found = await connection.exec_driver_sql("SELECT value FROM sequences WHERE namespace = 'test'")
        assert found.scalar_one() >= 0


async def test_a_locked_index_is_unavailable_in_bounded_time_and_readers_go_on(
    tmp_path: Path, store: Store
) -> None:
    await some.yard(store)
    other = sqlite3.connect(tmp_path / "data" / INDEX, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await store.ready()
    assert time.monotonic() - began < 5
    assert (await store.projects.page(0, 1)).total == 1
    other.execute("ROLLBACK")
    other.close()
    await store.ready()


async def test_a_directory_that_cannot_be_used_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable):
        await Store.open(tmp_path / "file" / "data", "crews")


async def test_a_second_process_is_refused_and_a_later_one_is_not(tmp_path: Path) -> None:
    first = await Store.open(tmp_path, "crews")
    with pytest.raises(StoreUnavailable, match="another process"):
        await Store.open(tmp_path, "crews")
    await first.close()
    await (await Store.open(tmp_path, "crews")).close()
