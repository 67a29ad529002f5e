"""Artifacts: rows to the API's JSON and to a download's headers. Pure. Called by the routes of artifacts."""

from typing import Any
from urllib.parse import quote

from api.store.index.artifacts import ArtifactRow
from api.v1.timestamps import moment
from crds import names


def item(row: ArtifactRow, public_url: str) -> dict[str, Any]:
    """An artifact as lists show it."""
    return {
        "name": row.name,
        "size": row.size,
        "content_type": row.content_type,
        "sha256": row.sha256,
        "partial": row.partial,
        "created_at": moment(row.created_at),
        "url": f"{public_url}/v1/runs/{names.id_of(row.run)}/artifacts/{quote(row.name, safe='/')}",
    }


def etag(row: ArtifactRow) -> str:
    """The strong validator of a file's bytes."""
    return f'"{row.sha256}"'


def headers(row: ArtifactRow) -> dict[str, str]:
    """What goes with the bytes. A crew chose them, so a browser stores them and never runs them here."""
    return {
        "Content-Type": row.content_type,
        "Content-Disposition": disposition(row.name),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "ETag": etag(row),
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
    }


def disposition(name: str) -> str:
    """`attachment` and the file's name, in ASCII for old readers and exactly for others (RFC 6266)."""
    last = name.rsplit("/", 1)[-1]
    plain = "".join(letter if letter.isascii() and letter.isprintable() else "_" for letter in last)
    plain = plain.replace("\\", "_").replace('"', "_").replace("%", "_")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(last, safe='')}"
