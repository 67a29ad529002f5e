"""The reset of recorded versions after a restore of etcd."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.engine import Engine
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.errors import StoreUnavailable
from api.store.index import object_versions
from api.store.sql.schema import runs
from api.store.store import Store
from tests.unit.api.store import builders


async def add_runs(store: Store) -> None:
    """Add five runs; the first by name has the newest version."""
    for number in reversed(range(5)):
        await store.run_writer.observe(builders.run(f"run-{number}", uid=f"uid-{number}"), builders.NOW)


async def versions(store: Store) -> dict[str, int]:
    async with store.database.read() as connection:
        rows = await connection.execute(select(runs.c.name, runs.c.version))
        return {row.name: row.version for row in rows}


async def test_all_versions_are_reset_in_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_versions, "ROWS_PER_TRANSACTION", 2)
    await add_runs(store)
    changed = []

    def record(_connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("UPDATE runs"):
            changed.append(cursor.rowcount)

    event.listen(Engine, "after_cursor_execute", record)
    try:
        await object_versions.reset_versions(store.database, store.namespace, runs)
    finally:
        event.remove(Engine, "after_cursor_execute", record)
    assert changed == [2, 2, 1]
    assert set((await versions(store)).values()) == {0}


async def test_an_interrupted_reset_keeps_the_newest_version(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_versions, "ROWS_PER_TRANSACTION", 2)
    await add_runs(store)
    before, write, transactions = await versions(store), store.database.write, iter([True])

    def interrupted() -> AbstractAsyncContextManager[AsyncConnection]:
        if not next(transactions, False):
            raise StoreUnavailable("the index is away")
        return write()

    monkeypatch.setattr(store.database, "write", interrupted)
    with pytest.raises(StoreUnavailable):
        await object_versions.reset_versions(store.database, store.namespace, runs)
    left = await versions(store)
    assert max(left.values()) == max(before.values())
    assert [*left.values()].count(0) == 2
