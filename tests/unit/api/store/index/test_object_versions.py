"""The reset of recorded versions after a restore of etcd."""

from typing import Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.engine import Engine

from api.store.index import object_versions
from api.store.sql.schema import runs
from api.store.store import Store
from tests.unit.api.store import builders


async def test_all_versions_are_reset_in_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_versions, "ROWS_PER_TRANSACTION", 2)
    for number in range(5):
        await store.run_writer.observe(builders.run(f"run-{number}", uid=f"uid-{number}"), builders.NOW)
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
    async with store.database.read() as connection:
        assert [*(await connection.execute(select(runs.c.version))).scalars()] == [0] * 5
