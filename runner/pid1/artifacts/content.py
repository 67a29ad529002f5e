"""One file on its way to the facade: its address, its type, its digest, its bytes. Used by `upload`."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 256 * 1024
_KIND = r"[a-z0-9.+-]+/[a-z0-9.+-]+\Z"


class Changed(Exception):
    """The file is not the same any more: it is taken up again later."""


def encoded(name: str) -> str:
    """The name as a path, every segment percent-encoded. Pure."""
    from urllib.parse import quote  # imported with the first file: the start of a run does not wait for it

    return "/".join(quote(part, safe="") for part in name.split("/"))


def content_type(name: str) -> str:
    """A guess by the name's ending alone. Pure."""
    import mimetypes
    import re

    ending = os.path.splitext(name.rsplit("/", 1)[-1])[1]
    kind = mimetypes.guess_type("x" + ending)[0] if ending.isprintable() and ending.isascii() else None
    if not kind or not re.match(_KIND, kind):
        return "application/octet-stream"
    return kind + "; charset=utf-8" if kind.startswith("text/") else kind


def digest(descriptor: int, size: int) -> str:
    """The SHA-256 of the first `size` bytes in hex. Raises Changed where there are fewer."""
    import hashlib

    total = hashlib.sha256()
    for piece in pieces(descriptor, size):
        total.update(piece)
    return total.hexdigest()


def pieces(descriptor: int, size: int) -> Iterator[bytes]:
    """The first `size` bytes. Raises Changed where there are fewer."""
    done = 0
    while done < size:
        piece = os.pread(descriptor, min(_PIECE, size - done), done)
        if not piece:
            raise Changed
        yield piece
        done += len(piece)
