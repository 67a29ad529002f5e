"""Tests of sealed logs: readable from every position, also by readers during the sealing."""

import asyncio
import gzip
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.maintenance.seal_logs import LogSealer
from api.store.accounting import account_batch
from api.store.blobs.backends import bucket_blobs
from api.store.errors import StoreUnavailable
from api.store.logs import gzip_blocks
from api.store.logs.event_log import NewEvent
from api.store.logs.events import EventPage
from api.store.postponed_runs import RETRY_AFTER
from api.store.store import Store
from tests.unit.api.store import bucket as s3
from tests.unit.api.store import builders


@pytest.fixture(params=["folder", "bucket"])
async def store(store: Store, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Use blobs in a directory or on an S3 server, and small blocks."""
    monkeypatch.setattr(gzip_blocks, "BLOCK_BYTES", 2000)
    if request.param == "bucket":
        server: s3.S3Server = request.getfixturevalue("bucket")
        blobs = bucket_blobs(f"s3://{server.new().name}/some/prefix")
        store.blobs = store.event_logs._blobs = blobs
    return store


async def create_ended_run(store: Store, events: int, end: bool = True) -> str:
    """Create a run with events from several calls that has ended."""
    run = await builders.claim_run(store)
    async with store.events.open_writer(run) as log:
        for start in range(1, events + 1, 100):
            numbers = range(start, min(start + 100, events + 1))
            await log.append(
                [NewEvent(n, "log", {"message": f"line {n}", "more": "é\0" * 9}) for n in numbers]
            )
    if end:
        await finish(store, run)
    return run


async def seal(store: Store, ended_before: datetime, limit: int) -> int:
    return await LogSealer(store).run_once(ended_before, ended_before, limit)


async def finish(store: Store, run: str) -> None:
    ended = {"completionTime": "2026-11-21T10:00:30Z"}
    await store.run_writer.observe(builders.run(run, "Succeeded", **ended), builders.NOW)
    store.events.notify_state_changed(run)
    await account_batch(store)


def shown(page: EventPage) -> list[tuple[int, str, Mapping[str, Any], bytes]]:
    """Return what readers get of the events."""
    return [(event.id, event.type, event.data, event.stored.json) for event in page.events]


async def replay(store: Store, run: str, after: int = 0, limit: int = 70) -> list[int]:
    ids: list[int] = []
    while True:
        page = await store.events.read(run, after, limit)
        ids += [event.id for event in page.events]
        assert all(
            event.data["message"] == f"line {event.id - 1}" for event in page.events if event.type == "log"
        )
        if page.ended:
            return ids
        assert page.events
        after = ids[-1]


async def test_sealed_log_from_every_position(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await create_ended_run(store, 450)
    assert await seal(store, builders.later(10), 10) == 0
    before = [await store.events.read(run, after, 37) for after in range(0, 453, 19)]
    assert await seal(store, builders.later(600), 10) > 0
    archive = await store.archives.find(run)
    assert archive is not None and len(archive.blocks) > 5
    for after, page in zip(range(0, 453, 19), before, strict=True):
        again = await store.events.read(run, after, 37)
        assert (shown(again), again.ended, again.total) == (shown(page), page.ended, page.total)
    assert await replay(store, run, 0) == list(range(1, 453))
    # The log is deleted, and the archive is plain gzip.
    assert await store.event_logs._logs.lines(run, 0, 9) == []
    data = b"".join([part async for part in store.blobs.read(archive.blob)])
    lines = gzip.decompress(data).splitlines()
    assert (len(lines), json.loads(lines[6])["d"]["message"]) == (450, "line 7")
    assert await seal(store, builders.later(600), 10) == 0


async def test_readers_during_sealing(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await create_ended_run(store, 600)

    async def read(pause: int) -> list[int]:
        ids: list[int] = []
        while len(ids) < 602:
            page = await store.events.read(run, len(ids), 9)
            ids += [event.id for event in page.events]
            for _ in range(pause):
                await asyncio.sleep(0)
        return ids

    readers = [asyncio.create_task(read(pause)) for pause in (0, 1, 7)]
    await asyncio.sleep(0.01)
    await seal(store, builders.later(600), 10)
    for reader in readers:
        assert await asyncio.wait_for(reader, 60) == list(range(1, 603))


async def test_only_ended_and_accounted_runs_are_sealed(store: Store) -> None:
    await builders.add_demo_project(store)
    live = await create_ended_run(store, 3, end=False)
    ended = await create_ended_run(store, 3)
    silent = await builders.create_run(store)
    await store.run_writer.observe(builders.run(silent, "Failed"), builders.NOW)
    await seal(store, builders.later(29), 10)
    assert await store.archives.find(ended) is None
    await seal(store, builders.later(99), 10)
    assert await store.archives.find(ended) is not None
    assert await store.archives.find(live) is await store.archives.find(silent) is None
    assert (await store.archives.unsealed(builders.later(99), 9)) == []
    await account_batch(store)
    await seal(store, builders.later(99), 10)
    assert (await store.archives.unsealed(builders.later(10**6), 9)) == []
    assert await replay(store, silent) == [1]


async def test_concurrent_seals_leave_one_archive(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await create_ended_run(store, 300)
    await asyncio.gather(*(seal(store, builders.later(600), 10) for _ in range(3)))
    # A call that learns late that another one was first.
    assert await store.event_logs.seal(run, 300) == 0
    assert await replay(store, run) == list(range(1, 303))


async def test_log_with_lost_end_is_sealed_with_gap(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, "crews")
    await builders.add_demo_project(store)
    run = await create_ended_run(store, 5)
    await store.close()
    file = next((tmp_path / "events").rglob("*.log"))
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:3]))
    store = await Store.open(tmp_path, "crews")
    assert await seal(store, builders.later(600), 10) > 0
    page = await store.events.read(run, 0, 99)
    assert [event.id for event in page.events] == list(range(1, 8)) and page.ended
    assert [event.data.get("level") for event in page.events] == [None] * 4 + ["error"] * 2 + [None]
    await store.close()


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(1, 900), max_size=40), after=st.integers(0, 45))
def test_archive_ranges(sizes: list[int], after: int) -> None:
    lines = [b"%d" % number * size + b"\n" for number, size in enumerate(sizes)]
    packer = gzip_blocks.BlockPacker()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gzip_blocks, "BLOCK_BYTES", 1500)
        blocks = [block for line in lines for block in packer.add([line])] + packer.flush()
    data = b"".join(block.data for block in blocks)
    unpacked = []
    for span in gzip_blocks.spans([(block.count, len(block.data)) for block in blocks], after):
        unpacked += gzip_blocks.unpack(data[span.start : span.end])[max(0, after - span.before) :]
    assert unpacked == lines[after:]


async def test_failing_seal_blocks_no_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await builders.add_demo_project(store)
    bad, *good = [await create_ended_run(store, 3) for _ in range(3)]
    seal_one = store.event_logs.seal

    async def refusing(run: str, record_count: int) -> int:
        if run == bad:
            raise StoreUnavailable("not this one")
        return await seal_one(run, record_count)

    monkeypatch.setattr(store.event_logs, "seal", refusing)
    sealer, now = LogSealer(store), builders.later(99)
    with pytest.raises(StoreUnavailable, match="not this one"):
        await sealer.run_once(now, now, 1)
    for _ in good:
        await sealer.run_once(now, now, 1)
    assert [await store.archives.find(run) is None for run in (bad, *good)] == [True, False, False]
    assert await sealer.run_once(now, now, 1) == 0
    monkeypatch.setattr(store.event_logs, "seal", seal_one)
    assert await sealer.run_once(now + 2 * RETRY_AFTER, now, 1) > 0
    assert await replay(store, bad) == [1, 2, 3, 4, 5]


async def test_failing_clear_blocks_no_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await builders.add_demo_project(store)
    bad, _ = [await create_ended_run(store, 3) for _ in range(2)]
    clear_one = store.event_logs.clear

    async def refusing(run: str) -> bool:
        if run == bad:
            raise StoreUnavailable("not this one")
        return await clear_one(run)

    monkeypatch.setattr(store.event_logs, "clear", refusing)
    sealer, now = LogSealer(store), builders.later(99)
    assert await sealer.run_once(now, now, 2) > 0
    assert await store.archives.uncleared(9) == [bad]
    assert await sealer.run_once(now, now, 1) == 0
    monkeypatch.setattr(store.event_logs, "clear", clear_one)
    assert await sealer.run_once(now + 2 * RETRY_AFTER, now, 1) > 0
    assert await store.archives.uncleared(9) == []
