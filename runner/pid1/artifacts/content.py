"""Path, content type, digest and bytes of a file to upload. Used by `transfer`."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK_BYTES = 256 * 1024
_CONTENT_TYPE = r"[a-z0-9.+-]+/[a-z0-9.+-]+\Z"


class FileChanged(Exception):
    """The file has changed; a later scan uploads it again."""


def encode_path(name: str) -> str:
    """Return the name as a path with percent-encoded segments. Pure."""
    from urllib.parse import quote  # on the first file, to keep the start of a run fast

    return "/".join(quote(part, safe="") for part in name.split("/"))


def content_type(name: str) -> str:
    """Return the content type by the file name extension alone. Pure."""
    import mimetypes
    import re

    extension = os.path.splitext(name.rsplit("/", 1)[-1])[1]
    kind = (
        mimetypes.guess_type("x" + extension)[0] if extension.isprintable() and extension.isascii() else None
    )
    if not kind or not re.match(_CONTENT_TYPE, kind):
        return "application/octet-stream"
    return kind + "; charset=utf-8" if kind.startswith("text/") else kind


def sha256_hex(descriptor: int, size: int) -> str:
    """Return the SHA-256 of the first `size` bytes in hex. Raises FileChanged if there are fewer."""
    import hashlib

    total = hashlib.sha256()
    for chunk in read_chunks(descriptor, size):
        total.update(chunk)
    return total.hexdigest()


def read_chunks(descriptor: int, size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes in chunks. Raises FileChanged if there are fewer."""
    done = 0
    while done < size:
        chunk = os.pread(descriptor, min(_CHUNK_BYTES, size - done), done)
        if not chunk:
            raise FileChanged
        yield chunk
        done += len(chunk)
