"""Counts of stored rows and bytes: one that fails leaves the others."""

from pathlib import Path
from typing import Any

import pytest

from api.store.errors import StoreUnavailable
from api.store.store import Store
from tests.unit.api.store import builders


async def test_a_count_that_fails_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await Store.open(tmp_path / "data", "crews")
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    await store.artifacts.put(run, "a", 3, "1", "text/plain", False, "blob", builders.NOW)
    row = await store.uploads.create("demo", 5, None, builders.NOW, builders.later(60))
    await store.uploads.mark_stored(row.id, "0" * 64, "blob", builders.NOW)
    meter = store.storage_meter
    number = meter._number

    async def slow(query: Any) -> int:
        if "FROM artifacts" in str(query):
            raise StoreUnavailable("too slow")
        return await number(query)

    with monkeypatch.context() as patched, pytest.raises(StoreUnavailable):
        patched.setattr(meter, "_number", slow)
        await meter.measure(builders.NOW)
    assert (meter.last.rows["run"], meter.last.rows["upload"], meter.last.bytes["upload"]) == (1, 1, 5)
    assert (meter.last.rows["artifact"], meter.last.bytes["artifact"]) == (0, 0)
    await meter.measure(builders.NOW)
    assert (meter.last.rows["artifact"], meter.last.bytes["artifact"]) == (1, 3)
    await store.close()
