"""Upload rows as JSON, and parsing of upload URLs. Pure. Called by the routes of uploads and deployments."""

import re
from typing import Any
from urllib.parse import quote, urlsplit

from api.store.blobs.presign import PresignedRequest
from api.store.index.uploads import UploadRow
from api.v1.timestamps import timestamp

_PATH = re.compile(r"/v1/uploads/(upl_[a-z0-9]{1,60})/content", re.ASCII)


def content_path(upload: str) -> str:
    """Return the path that takes an upload's bytes."""
    return f"/v1/uploads/{upload}/content"


def created(
    row: UploadRow, public_url: str, token: str, direct: PresignedRequest | None = None
) -> dict[str, Any]:
    """Return an upload as the response to its creation. Only `upload_url` grants permission to write.

    `direct`: presigned URL of the bucket to use instead of the API's.
    """
    address = public_url + content_path(row.id)
    return {
        "id": row.id,
        "upload_url": direct.url if direct else f"{address}?token={quote(token, safe='')}",
        "build_context_url": address,
        "method": "PUT",
        "headers": dict(direct.headers) if direct else {"Content-Type": "application/octet-stream"},
        "expires_at": timestamp(row.expires_at),
    }


def stored(row: UploadRow) -> dict[str, Any]:
    """Return an upload with its stored bytes."""
    return {"id": row.id, "size": row.size, "sha256": row.sha256}


def parse_upload_url(address: str, public_url: str) -> str | None:
    """Return the upload id of a build_context_url of this API, or None for any other URL."""
    base, url = urlsplit(public_url), _split(address)
    if url is None or (url[0], url[1]) != (base.scheme, base.netloc.lower()):
        return None
    path = url[2].removeprefix(base.path) if url[2].startswith(base.path) else ""
    match = _PATH.fullmatch(path)
    return match[1] if match else None


def _split(address: str) -> tuple[str, str, str] | None:
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    return parts.scheme, parts.netloc.lower(), parts.path
