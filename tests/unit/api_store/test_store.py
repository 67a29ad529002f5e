"""The store as a whole: schema, restarts, keys, and what it says when it cannot answer."""

import asyncio
import sqlite3
import time
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine

from api import ulid
from api.store.errors import StoreUnavailable
from api.store.index.keys import KeyRow
from api.store.migrate import migrate
from api.store.schema import metadata
from api.store.store import INDEX, Store
from tests.unit.api_store import given as some


def test_the_migrations_give_the_schema(tmp_path: Path) -> None:
    migrate(tmp_path / INDEX)
    migrate(tmp_path / INDEX)
    engine = create_engine(f"sqlite:///{tmp_path / INDEX}")
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


async def test_all_is_there_after_a_restart(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, "crews")
    await some.yard(store)
    run = await some.claimed(store, input={"topic": "ants"})
    await store.close()
    store = await Store.open(tmp_path, "crews")
    assert (await store.runs.get(run)).input == {"topic": "ants"}  # type: ignore[union-attr]
    assert await store.claims.holds(run, "pod", "nonce")
    assert [event.type for event in (await store.events.read(run, 0, 9)).events] == ["run.started"]
    await store.close()


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


async def test_a_reader_sees_one_commit(store: Store) -> None:
    await some.yard(store)
    stop = asyncio.Event()

    async def write() -> None:
        number = 0
        while not stop.is_set():
            await store.record.observe(some.run(f"run-n{number}"), some.NOW)
            number += 1

    writing = asyncio.create_task(write())
    for _ in range(50):
        page = await store.runs.page(0, 10_000)
        assert page.total == len(page.items)
    stop.set()
    await writing


async def test_keys_are_kept_and_replaced(store: Store) -> None:
    key = KeyRow("id", "hash", "ci", frozenset({"run", "read"}), frozenset({"demo"}), "pro", some.NOW)
    await store.keys.put(key)
    assert await store.keys.get("id") == key
    admin = KeyRow(
        "id", "hash2", "ci", frozenset({"admin"}), None, None, some.later(1), revoked_at=some.later(2)
    )
    assert await store.keys.all() == (key,)
    await store.keys.put(admin)
    assert await store.keys.get("id") == admin
    assert await store.keys.all() == ()
    assert await store.keys.get("other") is None


@settings(max_examples=50)
@given(clock=st.lists(st.integers(0, 2**47), max_size=200))
def test_ulids_grow_whatever_the_clock_does(clock: list[int]) -> None:
    source = ulid.Ulids()
    made = [source.next(now) for now in clock]
    assert made == sorted(set(made))
    assert all(len(name) == 26 and name.isalnum() and name == name.lower() for name in made)
