"""Artifacts as JSON and as the headers of a download, from their rows."""

import pytest

from api.store.index.artifacts import ArtifactRow
from api.v1.artifacts import view
from tests.unit.api.conftest import NOW

ROW = ArtifactRow("run-a-1", "tables/a b?.csv", 2, 7, "ab" * 32, "text/csv", True, NOW, "artifacts/x")


def test_artifact_in_a_list():
    assert view.item(ROW, "https://crews.example") == {
        "name": "tables/a b?.csv",
        "size": 7,
        "content_type": "text/csv",
        "sha256": "ab" * 32,
        "partial": True,
        "created_at": "2026-11-21T10:00:00Z",
        "url": "https://crews.example/v1/runs/run_a-1/artifacts/tables/a%20b%3F.csv",
    }


def test_browsers_save_a_download_and_never_execute_it():
    assert view.headers(ROW) == {
        "Content-Type": "text/csv",
        "Content-Disposition": "attachment; filename=\"a b?.csv\"; filename*=UTF-8''a%20b%3F.csv",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "ETag": f'"{"ab" * 32}"',
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/b/c.txt", "attachment; filename=\"c.txt\"; filename*=UTF-8''c.txt"),
        ('x"\r\n.txt', "attachment; filename=\"x___.txt\"; filename*=UTF-8''x%22%0D%0A.txt"),
        ("ü.txt", "attachment; filename=\"_.txt\"; filename*=UTF-8''%C3%BC.txt"),
        ("a\\%41.txt", "attachment; filename=\"a__41.txt\"; filename*=UTF-8''a%5C%2541.txt"),
    ],
)
def test_disposition_escapes_name(name, expected):
    assert view.disposition(name) == expected
