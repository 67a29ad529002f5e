"""Uploads as JSON, and the URLs of their bytes."""

from datetime import timedelta

import pytest

from api.store.blobs.presign import PresignedRequest
from api.store.index.uploads import UploadRow
from api.v1.uploads import view
from tests.unit.api.conftest import NOW

ROW = UploadRow("upl_1", "demo", 5, "ab" * 32, NOW, NOW + timedelta(hours=1), None, "uploads/upl_1")
URL = "http://y.example/v1/uploads/upl_1/content"


@pytest.mark.parametrize(
    ("direct", "url", "headers"),
    [
        (None, f"{URL}?token=a%2Fb%3D", {"Content-Type": "application/octet-stream"}),
        (PresignedRequest("https://bucket/x?y", {"a": "b"}), "https://bucket/x?y", {"a": "b"}),
    ],
)
def test_created_upload_says_where_to_put_the_bytes(direct, url, headers):
    assert view.created(ROW, "http://y.example", "a/b=", direct) == {
        "id": "upl_1",
        "upload_url": url,
        "build_context_url": URL,
        "method": "PUT",
        "headers": headers,
        "expires_at": "2026-11-21T11:00:00Z",
    }
    assert view.stored(ROW) == {"id": "upl_1", "size": 5, "sha256": "ab" * 32}


@pytest.mark.parametrize(
    ("public", "address", "upload"),
    [
        ("http://y.example", URL, "upl_1"),
        ("http://Y.example", "HTTP://y.Example/v1/uploads/upl_1/content?token=x", "upl_1"),
        ("https://y.example/crews", "https://y.example/crews/v1/uploads/upl_1/content", "upl_1"),
        ("https://y.example/crews", "https://y.example/v1/uploads/upl_1/content", None),
        ("http://y.example", "https://y.example/v1/uploads/upl_1/content", None),
        ("http://y.example", "http://y.example:81/v1/uploads/upl_1/content", None),
        ("http://y.example", "http://y.example/v1/uploads/upl_1/content/../../x", None),
        ("http://y.example", "http://[y.example/v1/uploads/upl_1/content", None),
    ],
)
def test_upload_is_named_by_urls_of_this_api_alone(public, address, upload):
    assert view.parse_upload_url(address, public) == upload
