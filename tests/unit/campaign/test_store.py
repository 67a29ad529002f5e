"""Lost or leftover data of a store is found; nothing is found if rows and files agree."""

import hashlib
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from api.store.sql.migrate import migrate
from tests.campaign.child import Child
from tests.campaign.store.contents import BlobFile, StoreContents, StoredRow, read
from tests.campaign.store.snapshot import stores
from tests.campaign.store.verdict import leftovers, missing_blobs, missing_uploads

MOMENT = 1_795_000_000_000_000
"""A time in 2026, as the index stores it."""
A, B = BlobFile(3, "a" * 64), BlobFile(5, "b" * 64)
ROWS = (
    StoredRow("a.bin of run-a", "crews/runs/run-a/a", 3, "a" * 64),
    StoredRow("the events of run-a", "crews/runs/run-a/e", 5),
)
GOOD = StoreContents(
    runs={"run-a": True, "run-b": True},
    builds=frozenset({"dep-a.1"}),
    rows=ROWS,
    blobs={"crews/runs/run-a/a": A, "crews/runs/run-a/e": B},
    build_logs=frozenset({"dep-a.1"}),
)
UPLOAD = StoredRow("upload upl_1", "crews/uploads/upl_1/x", 3, "a" * 64)


def test_no_violation_if_rows_and_files_agree():
    assert [*missing_blobs(GOOD), *leftovers(GOOD), *missing_uploads(GOOD, {})] == []


@pytest.mark.parametrize(
    ("blobs", "words"),
    [
        ({"crews/runs/run-a/e": B}, "a.bin of run-a has a row and no blob"),
        ({"crews/runs/run-a/a": A}, "the events of run-a has a row and no blob"),
        (
            {"crews/runs/run-a/a": BlobFile(2, "a" * 64), "crews/runs/run-a/e": B},
            "a.bin of run-a has other bytes",
        ),
        (
            {"crews/runs/run-a/a": BlobFile(3, "c" * 64), "crews/runs/run-a/e": B},
            "a.bin of run-a has other bytes",
        ),
    ],
)
def test_a_row_without_its_blob_is_found(blobs, words):
    (text,) = missing_blobs(replace(GOOD, blobs=blobs))
    assert text.startswith(words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"blobs": {**GOOD.blobs, "crews/runs/run-z/a": A}}, "blob crews/runs/run-z/a has no row"),
        ({"blobs": {**GOOD.blobs, "crews/uploads/upl_9/x": A}}, "blob crews/uploads/upl_9/x has no row"),
        ({"begun": frozenset({"crews/runs/run-a/a#1"})}, "file crews/runs/run-a/a#1 never became a blob"),
        ({"announced": frozenset({"upl_1"})}, "upload upl_1 is there long after it has expired"),
        ({"event_logs": frozenset({"run-z"})}, "there is an event log of run-z, which is no run"),
        ({"event_logs": frozenset({"run-a"})}, "the log of run-a is there though it is sealed"),
        ({"runs": {**GOOD.runs, "run-c": False}}, "the events of run-c are not sealed long after its end"),
        ({"build_logs": frozenset({"dep-a.2"})}, "there is a build log of dep-a.2, which is no deployment"),
    ],
)
def test_leftovers_are_found(change, words):
    assert list(leftovers(replace(GOOD, **change))) == [words]


def test_a_lost_acknowledged_upload_is_found():
    with_upload = replace(GOOD, rows=(*ROWS, UPLOAD))
    assert list(missing_uploads(with_upload, {"upl_1": "a" * 64})) == []
    assert list(missing_uploads(with_upload, {"upl_1": "b" * 64})) == [
        "upload upl_1 was stored, and is not there"
    ]
    assert list(missing_uploads(GOOD, {"upl_1": "a" * 64})) == ["upload upl_1 was stored, and is not there"]


def artifact(directory, run: str, blob: str, data: bytes) -> None:
    """Insert an artifact's row without its file."""
    digest = hashlib.sha256(data).hexdigest()
    values = ("crews", run, "a.bin", 1, len(data), digest, "x/y", 0, MOMENT, blob)
    with sqlite3.connect(directory / "index.sqlite3") as index:
        index.execute(f"INSERT INTO artifacts VALUES ({', '.join('?' * len(values))})", values)


def upload(directory, name: str, stored: int | None) -> None:
    """Insert an upload's row."""
    values = ("crews", name, "p", 3, "a" * 64, MOMENT, MOMENT, stored, f"crews/uploads/{name}/x")
    with sqlite3.connect(directory / "index.sqlite3") as index:
        index.execute(f"INSERT INTO uploads VALUES ({', '.join('?' * len(values))})", values)


def write(directory, *paths: str) -> None:
    """Write files of three bytes."""
    for path in paths:
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(b"ebb")


def test_a_store_is_read(tmp_path):
    migrate(tmp_path / "index.sqlite3")
    artifact(tmp_path, "run-a", "crews/a", b"ebb")
    upload(tmp_path, "upl_1", None)
    upload(tmp_path, "upl_2", MOMENT)
    write(tmp_path, "blobs/crews/a", "blobs/crews/b#12", "events/crews/-a/run-a/1.log")
    write(tmp_path, "buildlogs/crews/.1/dep-a.1/1.log")
    content = read(tmp_path, "crews")
    digest = hashlib.sha256(b"ebb").hexdigest()
    assert content.rows == (
        StoredRow("a.bin of run-a", "crews/a", 3, digest),
        StoredRow("upload upl_2", "crews/uploads/upl_2/x", 3, "a" * 64),
    )
    assert content.blobs == {"crews/a": BlobFile(3, digest)}
    assert (content.begun, content.announced) == ({"crews/b#12"}, {"upl_1", "upl_2"})
    assert (content.event_logs, content.build_logs) == ({"run-a"}, {"dep-a.1"})
    assert list(missing_blobs(content)) == ["upload upl_2 has a row and no blob"]


async def test_maintenance_removes_leftovers_and_nothing_else(tmp_path):
    data = tmp_path / "data"
    api = Child("api", "api", Path(__file__).parents[3], tmp_path, {"CREWYARD_DATA": str(data)}, 0, "")
    data.mkdir()
    migrate(data / "index.sqlite3")
    with sqlite3.connect(data / "index.sqlite3") as index:
        # The index has tracked all blobs since before these were written.
        index.execute("INSERT INTO sequences VALUES ('crews', 'born', 1)")
    named, orphan = "crews/runs/run-a/a", "crews/runs/run-z/b"
    artifact(data, "run-a", named, b"ebb")
    upload(data, "upl_1", MOMENT)
    write(data, *(f"blobs/{key}" for key in (named, orphan, f"{named}#7", "crews/uploads/upl_1/x")))
    contents = await stores(api, "crews")
    assert contents is not None
    now, later = contents
    assert set(now.blobs) == {named, orphan, "crews/uploads/upl_1/x"}
    assert len(list(leftovers(now))) == 3
    assert set(later.blobs) == {named}
    assert list(leftovers(later)) == []
    # It worked on a copy.
    assert read(data, "crews") == now
