"""Uploads: their addresses, and which upload one names. Pure. Called by routes of uploads, deployments."""

import re
from typing import Any
from urllib.parse import quote, urlsplit

from api.store.blobs.presign import Signed
from api.store.index.uploads import UploadRow
from api.v1.timestamps import moment

_PATH = re.compile(r"/v1/uploads/(upl_[a-z0-9]{1,60})/content", re.ASCII)


def path(upload: str) -> str:
    """Where an upload's bytes go."""
    return f"/v1/uploads/{upload}/content"


def created(row: UploadRow, public_url: str, token: str, direct: Signed | None = None) -> dict[str, Any]:
    """An upload as its creation is answered. Only `upload_url` carries the permission to write.

    `direct`: the address in the bucket that takes the place of ours.
    """
    address = public_url + path(row.id)
    return {
        "id": row.id,
        "upload_url": direct.url if direct else f"{address}?token={quote(token, safe='')}",
        "build_context_url": address,
        "method": "PUT",
        "headers": dict(direct.headers) if direct else {"Content-Type": "application/octet-stream"},
        "expires_at": moment(row.expires_at),
    }


def stored(row: UploadRow) -> dict[str, Any]:
    """An upload whose bytes are here."""
    return {"id": row.id, "size": row.size, "sha256": row.sha256}


def named_by(address: str, public_url: str) -> str | None:
    """The upload behind a build_context_url of ours; None for any other address."""
    ours, given = urlsplit(public_url), _split(address)
    if given is None or (given[0], given[1]) != (ours.scheme, ours.netloc.lower()):
        return None
    rest = given[2].removeprefix(ours.path) if given[2].startswith(ours.path) else ""
    found = _PATH.fullmatch(rest)
    return found[1] if found else None


def _split(address: str) -> tuple[str, str, str] | None:
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    return parts.scheme.lower(), parts.netloc.lower(), parts.path
