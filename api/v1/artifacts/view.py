"""Artifact rows as JSON and as download headers. Pure. Called by the routes of artifacts."""

from typing import Any
from urllib.parse import quote

from api.store.index.artifacts import ArtifactRow
from api.v1.timestamps import timestamp
from crds import names


def item(row: ArtifactRow, public_url: str) -> dict[str, Any]:
    """Return an artifact as a list item."""
    return {
        "name": row.name,
        "size": row.size,
        "content_type": row.content_type,
        "sha256": row.sha256,
        "partial": row.partial,
        "created_at": timestamp(row.created_at),
        "url": f"{public_url}/v1/runs/{names.id_of(row.run)}/artifacts/{quote(row.name)}",
    }


def etag(row: ArtifactRow) -> str:
    """Return the strong ETag of a file."""
    return f'"{row.sha256}"'


def headers(row: ArtifactRow) -> dict[str, str]:
    """Return the headers of a download. The bytes are untrusted: browsers save but never execute them."""
    return {
        "Content-Type": row.content_type,
        "Content-Disposition": disposition(row.name),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "ETag": etag(row),
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
    }


def disposition(name: str) -> str:
    """Return `attachment` with the file name, in ASCII for old clients and in UTF-8 for others (RFC 6266)."""
    last = name.rpartition("/")[2]
    plain = "".join(letter if letter.isascii() and letter.isprintable() else "_" for letter in last)
    plain = plain.replace("\\", "_").replace('"', "_").replace("%", "_")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(last)}"
