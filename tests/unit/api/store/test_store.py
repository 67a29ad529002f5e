"""Tests of the whole store: schema, restarts, keys."""

import asyncio
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import create_async_engine

from api.store import ulid
from api.store.backend import INDEX
from api.store.errors import StoreUnavailable
from api.store.index.api_keys import KeyRow
from api.store.sql.schema import journal_metadata, metadata
from api.store.store import Store
from tests.unit.api.store import builders


async def test_migrations_match_schema(tmp_path: Path, empty_database: str | None) -> None:
    whole = metadata if empty_database is None else [metadata, journal_metadata]
    for _ in range(2):
        await (await Store.open(tmp_path, "crews", empty_database)).close()
    made = create_async_engine(empty_database or f"sqlite+aiosqlite:///{tmp_path / INDEX}")
    async with made.connect() as connection:
        differences = await connection.run_sync(
            lambda c: compare_metadata(MigrationContext.configure(c), whole)
        )
    assert differences == []
    await made.dispose()


async def test_killed_migration_restarts(
    tmp_path: Path, empty_database: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_arguments: object, **_more: object) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patched:
        # After tables were created, in the last migration that changes rows.
        patched.setattr(Operations, "drop_index", killed)
        with pytest.raises(StoreUnavailable):
            await Store.open(tmp_path, "crews", empty_database)
    await (await Store.open(tmp_path, "crews", empty_database)).close()


async def test_data_survives_restart(tmp_path: Path, database_url: str | None) -> None:
    store = await Store.open(tmp_path, "crews", database_url)
    await builders.add_demo_project(store)
    run = await builders.claim_run(store, input={"topic": "ants"})
    await store.close()
    store = await Store.open(tmp_path, "crews", database_url)
    assert (await store.runs.get(run)).input == {"topic": "ants"}  # type: ignore[union-attr]
    assert await store.claims.holds(run, "pod", "nonce")
    assert [event.type for event in (await store.events.read(run, 0, 9)).events] == ["run.started"]
    await store.close()


async def test_a_reader_sees_one_commit(store: Store) -> None:
    await builders.add_demo_project(store)
    stop = asyncio.Event()

    async def write() -> None:
        number = 0
        while not stop.is_set():
            await store.run_writer.observe(builders.run(f"run-n{number}"), builders.NOW)
            number += 1

    writing = asyncio.create_task(write())
    for _ in range(50):
        page = await store.runs.page(0, 10_000)
        assert page.total == len(page.items)
    stop.set()
    await writing


async def test_api_keys(store: Store) -> None:
    key = KeyRow("id", "hash", "ci", frozenset({"run", "read"}), frozenset({"demo"}), "pro", builders.NOW)
    await store.keys.put(key)
    assert await store.keys.get("id") == key
    admin = KeyRow(
        "id", "hash2", "ci", frozenset({"admin"}), None, None, builders.later(1), revoked_at=builders.later(2)
    )
    assert await store.keys.all() == (key,)
    await store.keys.put(admin)
    assert await store.keys.get("id") == admin
    assert await store.keys.all() == ()
    assert await store.keys.get("other") is None


@settings(max_examples=50)
@given(clock=st.lists(st.integers(0, 2**47), max_size=200))
def test_ulids_are_monotonic(clock: list[int]) -> None:
    source = ulid.UlidGenerator()
    made = [source.next(now) for now in clock]
    assert made == sorted(set(made))
    assert all(len(name) == 26 and name.isalnum() and name == name.lower() for name in made)
