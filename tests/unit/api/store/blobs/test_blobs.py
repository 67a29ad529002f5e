"""Tests of blobs, uploads, artifacts and build logs."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from api.store.blobs import direct_upload
from api.store.blobs.backends import bucket_blobs, directory_blobs
from api.store.blobs.blobs import Blobs
from api.store.errors import Mismatch, Missing, StoreConflict, StoreUnavailable, TooLarge, UploadQuotaExceeded
from api.store.logs.build_logs import Chunk, FileBuildLogs
from api.store.sql.notifier import Notifier
from api.store.store import Store
from tests.unit.api.store import builders

DATA = bytes(range(256)) * 10_000
SHA = hashlib.sha256(DATA).hexdigest()


async def chunks(data: bytes, size: int = 70_000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def read_all(parts: AsyncIterator[bytes]) -> bytes:
    return b"".join([part async for part in parts])


@pytest.fixture(params=["folder", "bucket"])
def blob_directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the directory with the blob files: the store's own, or that of an S3 server."""
    return tmp_path / "blobs" if request.param == "folder" else request.getfixturevalue("bucket").new()


@pytest.fixture
def blobs(blob_directory: Path, request: pytest.FixtureRequest) -> Blobs:
    if request.node.callspec.params["blob_directory"] == "folder":
        return directory_blobs(blob_directory)
    return bucket_blobs(f"s3://{blob_directory.name}/some/prefix")


async def test_blob_round_trip_whole_and_ranges(blobs: Blobs) -> None:
    stored = await blobs.put("crews/a/b", chunks(DATA), len(DATA), SHA)
    assert (stored.size, stored.sha256) == (len(DATA), SHA)
    assert await read_all(blobs.read("crews/a/b")) == DATA
    assert await read_all(blobs.read("crews/a/b", 5, 700_000)) == DATA[5:700_000]
    assert await read_all(blobs.read("crews/a/b", len(DATA) - 3)) == DATA[-3:]
    await blobs.put("crews/empty", chunks(b""), 0, None)
    assert await read_all(blobs.read("crews/empty")) == b""
    await blobs.delete("crews/a/b")
    await blobs.delete("crews/a/b")
    with pytest.raises(Missing):
        await read_all(blobs.read("crews/a/b"))


async def test_reader_gets_one_version_to_the_end(blobs: Blobs) -> None:
    """Even if the blob is replaced or deleted meanwhile."""
    await blobs.put("crews/a", chunks(DATA), len(DATA), SHA)
    replaced, deleted = blobs.read("crews/a"), blobs.read("crews/a")
    read = [await anext(replaced), await anext(deleted)]
    await blobs.put("crews/a", chunks(DATA[::-1]), len(DATA), None)
    read[0] += await read_all(replaced)
    await blobs.delete("crews/a")
    read[1] += await read_all(deleted)
    assert [one == DATA for one in read] == [True, True]


@pytest.mark.parametrize(
    ("size", "sha256", "error"),
    [
        (len(DATA) - 1, SHA, TooLarge),
        (len(DATA) + 1, SHA, Mismatch),
        (len(DATA), "0" * 64, Mismatch),
    ],
)
async def test_mismatch_stores_nothing(
    blobs: Blobs, blob_directory: Path, size: int, sha256: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await blobs.put("crews/a", chunks(DATA), size, sha256)
    assert not [path for path in blob_directory.rglob("*") if path.is_file()]


async def test_an_upload_is_stored_once(store: Store) -> None:
    row = await store.uploads.create("demo", len(DATA), SHA, builders.NOW, builders.later(60))
    with pytest.raises(Mismatch):
        await store.receive(row.id, chunks(DATA[:-1] + b"x"), builders.NOW)
    stored = await store.receive(row.id, chunks(DATA), builders.later(5))
    assert (stored.sha256, stored.stored_at) == (SHA, builders.later(5))
    assert await store.receive(row.id, chunks(DATA), builders.later(90)) == stored
    with pytest.raises(StoreConflict):
        await store.receive(row.id, chunks(DATA[::-1]), builders.later(6))
    assert await read_all(store.blobs.read(stored.blob)) == DATA


async def test_first_finished_of_two_senders_wins(store: Store) -> None:
    row = await store.uploads.create("demo", len(DATA), None, builders.NOW, builders.later(60))
    other, gate = DATA[::-1], asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield other[:100]
        await gate.wait()
        yield other[100:]

    late = asyncio.create_task(store.receive(row.id, slow(), builders.NOW))
    await asyncio.sleep(0)
    stored = await store.receive(row.id, chunks(DATA), builders.NOW)
    gate.set()
    with pytest.raises(StoreConflict):
        await late
    assert await read_all(store.blobs.read(stored.blob)) == DATA
    assert (await store.uploads.get(row.id)) == stored
    assert [len(page) async for page in store.blobs.list_folder(f"{store.namespace}/uploads")] == [1]


async def test_upload_quota(store: Store) -> None:
    async def announce(project: str, size: int, now: float = 0) -> str:
        begun, until = builders.later(now), builders.later(now + 60)
        row = await store.uploads.create(project, size, None, begun, until, 100)
        return row.id

    first = await announce("demo", 60)
    with pytest.raises(UploadQuotaExceeded) as refusal:
        await announce("demo", 41)
    assert (refusal.value.used, refusal.value.limit) == (60, 100)
    await announce("demo", 40)
    await announce("other", 100)
    await store.uploads.remove([first])
    await announce("demo", 60)
    # An expired upload no longer counts; a stored one counts until it is deleted.
    sent = await announce("other", 3, 61)
    await store.receive(sent, chunks(b"abc"), builders.later(62))
    with pytest.raises(UploadQuotaExceeded):
        await announce("other", 98, 200)
    await announce("other", 97, 200)


async def test_an_expired_or_unknown_upload_is_missing(store: Store) -> None:
    row = await store.uploads.create("demo", 3, None, builders.NOW, builders.later(60))
    for name, now in ((row.id, builders.later(61)), ("upl_nowhere", builders.NOW)):
        with pytest.raises(Missing):
            await store.receive(name, chunks(b"abc"), now)


async def test_artifacts_latest_version(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)

    async def put(name: str, sha: str, partial: bool = False) -> int:
        row = await store.artifacts.put(run, name, 3, sha, "text/plain", partial, "b/" + sha, builders.NOW)
        return row.version

    assert [await put("a", "1"), await put("b", "2"), await put("a", "1")] == [1, 2, 1]
    assert [await put("a", "3"), await put("a", "3", partial=True)] == [3, 4]
    page = await store.artifacts.page(run, 0, 10)
    assert [(row.name, row.sha256, row.partial) for row in page.items] == [
        ("a", "3", True),
        ("b", "2", False),
    ]
    assert await store.artifacts.totals(run) == await store.artifacts.totals(run, excluding="c")
    assert (await store.artifacts.totals(run, excluding="a")).count == 1
    assert await store.artifacts.is_blob_used(run, "b/2")
    assert not await store.artifacts.is_blob_used(run, "b/1")


@pytest.mark.parametrize(
    ("phase", "reason", "partial"),
    [
        ("Succeeded", None, False),
        ("Failed", "CrewError", False),
        ("Failed", "DeadlineExceeded", True),
        ("Failed", "OOMKilled", True),
        ("Canceled", None, True),
    ],
)
async def test_artifacts_of_interrupted_run_are_partial(
    store: Store, phase: str, reason: str | None, partial: bool
) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    await store.artifacts.put(run, "a", 3, "1", "text/plain", False, "blob", builders.NOW)
    assert (await store.artifacts.get(run, "a")).partial is False  # type: ignore[union-attr]
    status = {"error": {"reason": reason, "message": ""}} if reason else {}
    await store.run_writer.observe(builders.run(run, phase, **status), builders.NOW)
    assert (await store.artifacts.get(run, "a")).partial is partial  # type: ignore[union-attr]


async def test_build_log_stores_each_chunk_once(tmp_path: Path) -> None:
    logs = FileBuildLogs(tmp_path, Notifier())
    assert await logs.append("dep-a", "pod-1", "assemble", [Chunk(1, "one\n"), Chunk(2, "two\n")]) == 2
    assert await logs.append("dep-a", "pod-1", "assemble", [Chunk(2, "two\n"), Chunk(3, "three\n")]) == 3
    assert await logs.append("dep-a", "pod-1", "assemble", [Chunk(5, "five\n")]) == 3
    assert await logs.append("dep-a", "pod-2", "kaniko", [Chunk(1, "built\n")]) == 1
    reopened = FileBuildLogs(tmp_path, Notifier())
    assert await reopened.append("dep-a", "pod-1", "assemble", [Chunk(3, "three\n")]) == 3
    page = await reopened.read("dep-a")
    assert page.text == "one\ntwo\nthree\nbuilt\n"
    first = await reopened.read("dep-a", 0, 2)
    assert first.text + (await reopened.read("dep-a", first.next)).text == page.text
    assert (await reopened.read("dep-unknown")).text == ""


async def test_build_log_follow(tmp_path: Path) -> None:
    logs = FileBuildLogs(tmp_path, Notifier())
    page = await logs.read("dep-a")
    waiting = asyncio.create_task(logs.wait("dep-a", page.mark, 30))
    await asyncio.sleep(0)
    await logs.append("dep-a", "pod", "kaniko", [Chunk(1, "line\n")])
    await asyncio.wait_for(waiting, 20)
    assert (await logs.read("dep-a", page.next)).text == "line\n"


async def test_concurrent_imports_of_one_upload(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, "crews")
    row = await store.uploads.create("demo", 4, None, builders.NOW, builders.later(60))
    await store.blobs.put(direct_upload.incoming_key(row), chunks(b"code"), 4, None)
    arrived = AsyncMock()
    first = await direct_upload.import_upload(store.uploads, store.blobs, row, builders.NOW, arrived)
    # The second call read the row before the first had finished.
    assert (
        await direct_upload.import_upload(store.uploads, store.blobs, row, builders.later(1), arrived)
        == first
    )
    assert first.stored_at == builders.NOW
    assert arrived.await_count == 1
    await store.close()


async def test_a_refused_import_copies_nothing(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, "crews")
    row = await store.uploads.create("demo", 4, None, builders.NOW, builders.later(60))
    await store.blobs.put(direct_upload.incoming_key(row), chunks(b"code"), 4, None)
    refuse = AsyncMock(side_effect=StoreConflict("too many deployments"))
    with pytest.raises(StoreConflict):
        await direct_upload.import_upload(store.uploads, store.blobs, row, builders.NOW, refuse)
    assert [page async for page in store.blobs.list_folder("crews/uploads")] == []
    await store.close()


@pytest.mark.parametrize("failing", ["copy", "read"])
async def test_a_failed_import_leaves_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    store = await Store.open(tmp_path, "crews")
    row = await store.uploads.create("demo", 4, None, builders.NOW, builders.later(60))
    await store.blobs.put(direct_upload.incoming_key(row), chunks(b"code"), 4, None)
    copy = store.blobs.copy

    async def copy_late(*args: Any) -> None:
        await copy(*args)
        raise StoreUnavailable("too slow")

    async def read_none(_: str) -> AsyncIterator[bytes]:
        raise StoreUnavailable("too slow")
        yield b""

    with monkeypatch.context() as patched, pytest.raises(StoreUnavailable):
        patched.setattr(store.blobs, failing, copy_late if failing == "copy" else read_none)
        await direct_upload.import_upload(store.uploads, store.blobs, row, builders.NOW, AsyncMock())
    assert [page async for page in store.blobs.list_folder("crews/uploads")] == []
    imported = await direct_upload.import_upload(store.uploads, store.blobs, row, builders.NOW, AsyncMock())
    assert imported.stored_at == builders.NOW
    await store.close()
