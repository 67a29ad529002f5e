"""The store in a directory: what is on disk, and what it says when it cannot answer."""

import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.store.errors import StoreUnavailable
from api.store.kept import INDEX
from api.store.store import Store
from tests.unit.api_store import given as some


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
