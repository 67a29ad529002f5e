"""Rows of a project in PostgreSQL and their files in a bucket: what is missing is found."""

from pathlib import Path

import pytest

from tests.campaign.replicas.shared_store import read_servers
from tests.campaign.store.verdict import missing_blobs, missing_uploads
from tests.unit.api.store.conftest import postgres

__all__ = ["postgres"]

SHA256 = "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7"
"""Of the bytes `data`."""
RUN = (
    "INSERT INTO runs (namespace, name, ord, version, project, status, hidden, withdrawn, present, "
    "created_at, input, cancel) VALUES ('crews', '{run}', {ord}, 1, '{project}', 'succeeded', false, false, "
    "true, 1, '{{}}', false)"
)
ARTIFACT = (
    "INSERT INTO artifacts (namespace, run, name, version, size, sha256, content_type, partial, created_at, "
    "blob) VALUES ('crews', '{run}', 'a.bin', 1, 4, '{sha256}', 'text/plain', false, 1, '{blob}')"
)
UPLOAD = (
    "INSERT INTO uploads (namespace, id, project, size, sha256, created_at, expires_at, stored_at, blob) "
    "VALUES ('crews', 'upl_1', 'mine', 4, '{sha256}', 1, 2, 1, 'crews/uploads/upl_1/a')"
)


@pytest.fixture
def url(postgres):
    found = postgres.database("filled")
    name = found.partition("@/")[2].partition("?")[0]
    for number, project in enumerate(("mine", "other")):
        run = f"run-{project}"
        postgres.sql(name, RUN.format(run=run, ord=number, project=project))
        postgres.sql(name, ARTIFACT.format(run=run, sha256=SHA256, blob=f"crews/runs/{run}/a"))
    postgres.sql(name, UPLOAD.format(sha256=SHA256))
    return found


def write(bucket: Path, key: str, data: bytes = b"data") -> None:
    path = bucket / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


async def test_rows_and_files_of_one_project_agree(url, tmp_path):
    write(tmp_path, "crews/runs/run-mine/a")
    write(tmp_path, "crews/uploads/upl_1/a")
    found = await read_servers(url, tmp_path, "mine")
    assert [row.what for row in found.rows] == ["a.bin of run-mine", "upload upl_1"]
    assert list(missing_blobs(found)) == []
    assert list(missing_uploads(found, {"upl_1": SHA256})) == []


async def test_lost_bytes_and_rows_are_found(url, tmp_path):
    write(tmp_path, "crews/runs/run-mine/a", b"dat#")
    found = await read_servers(url, tmp_path, "mine")
    assert list(missing_blobs(found)) == [
        "a.bin of run-mine has other bytes than its row says",
        "upload upl_1 has a row and no blob",
    ]
    assert list(missing_uploads(found, {"upl_2": SHA256})) == ["upload upl_2 was stored, and is not there"]
