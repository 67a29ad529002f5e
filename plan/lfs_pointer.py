"""Pointers of Git LFS: small files that a repository has in place of large ones. Pure.

Called by build.source.git_tree, which fetches what they stand for, by build.planned_source and by lint.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from .errors import join_limited
from .source import Files

MAX_POINTER_BYTES = 1024
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize ([0-9]{1,15})\n"
)


@dataclass(frozen=True)
class LfsPointer:
    """The SHA-256 (hexadecimal) and the size in bytes of the file that a pointer stands for."""

    oid: str
    size: int


def read_pointer(data: bytes) -> LfsPointer | None:
    """Return the pointer that a file consists of, or None."""
    match = _POINTER.fullmatch(data)
    return LfsPointer(match[1].decode(), int(match[2])) if match else None


def pointer_notes(files: Files, size_of: Callable[[str], int]) -> list[str]:
    """Return a note that names the files that are pointers; `size_of` tells which are not worth reading."""
    paths = [path for path in files if size_of(path) <= MAX_POINTER_BYTES and read_pointer(files[path])]
    if not paths:
        return []
    are = "is a pointer" if len(paths) == 1 else "are pointers"
    return [f"{join_limited(paths)} {are} of Git LFS: the crew gets the pointer instead of the file"]
