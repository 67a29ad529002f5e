"""Sums of the stored bytes of a project: measured once at a time, and kept while the database fails."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from api.store.errors import StoreUnavailable
from api.store.index.project_storage import MEASURE_SECONDS, ProjectStorage, StoredBytes
from api.store.store import Store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(tmp_path / "data", "crews")
    yield opened
    await opened.close()


async def test_ten_first_calls_measure_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    storage, measured = store.project_storage, []
    measure = storage._measure

    async def counted(project: str) -> Any:
        measured.append(project)
        return await measure(project)

    monkeypatch.setattr(storage, "_measure", counted)
    found = await asyncio.gather(*(storage.of("p1") for _ in range(10)))
    assert found == [("free", StoredBytes())] * 10 and measured == ["p1"]


async def test_the_last_sums_stay_while_the_database_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, sums = [0.0], [("pro", StoredBytes(artifacts=5))]
    storage = ProjectStorage(store.database, "crews", lambda: now[0])

    async def measure(project: str) -> Any:
        if not sums:
            raise StoreUnavailable("too slow")
        return sums.pop()

    monkeypatch.setattr(storage, "_measure", measure)
    await storage.of("p1")
    now[0] += MEASURE_SECONDS
    assert await storage.of("p1") == ("pro", StoredBytes(artifacts=5))
    with pytest.raises(StoreUnavailable):
        await storage.of("p2")
    sums.append(("pro", StoredBytes(artifacts=7)))
    now[0] += MEASURE_SECONDS
    assert await storage.of("p1") == ("pro", StoredBytes(artifacts=7))


async def test_logs_of_an_unmeasured_project_are_not_remembered(store: Store) -> None:
    now = [0.0]
    storage = ProjectStorage(store.database, "crews", lambda: now[0])
    storage.record_log("p1", "run-a", 5)
    assert storage._open_logs.get("p1") is None
    await storage.of("p1")
    storage.record_log("p1", "run-a", 5)
    assert (await storage.of("p1"))[1].events == 5
    now[0] += 2 * MEASURE_SECONDS
    storage.record_log("p1", "run-b", 5)
    assert storage._open_logs.get("p1") is None
