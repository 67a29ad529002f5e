"""Untrusted image in one tar file, as Kaniko's --tar-path writes it. Called by build.registry.push.

Reads the headers once, strictly and up to a maximum; then reads members in place. Extracts nothing and
follows no link.
"""

import io
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from build.source.tar import TarInvalid, members

MAX_LAYERS = 127
_MAX_JSON_BYTES = 4 << 20
# Layers, configuration and index, with a margin for files that other Kaniko versions add.
_MAX_MEMBERS = 2 * MAX_LAYERS + 16


class ImageFileInvalid(Exception):
    """The file is not an image in Kaniko's format."""


@dataclass(frozen=True)
class _MemberLocation:
    offset: int
    size: int


class ImageFile:
    """An image in the seekable `file` of `size` bytes. All methods raise ImageFileInvalid."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._members: dict[str, _MemberLocation] = {}
        try:
            for member in members(file):
                if len(self._members) >= _MAX_MEMBERS:
                    raise ImageFileInvalid(f"has more than {_MAX_MEMBERS} members")
                offset = file.tell()
                if member.kind != "file" or member.name in self._members or offset + member.size > size:
                    raise ImageFileInvalid(f"{member.name[:200]!r} is not a file, a duplicate, or truncated")
                self._members[member.name] = _MemberLocation(offset, member.size)
                file.seek(offset + member.size)
                member.content.bytes_left = 0
        except TarInvalid as error:
            raise ImageFileInvalid(str(error)) from None

    def index(self) -> tuple[bytes, list[str]]:
        """Return the configuration and the names of the layers, lowest first."""
        try:
            (image,) = json.loads(self._read_small("manifest.json"))
            config = self._read_small(str(image["Config"]))
            names = [str(name) for name in image["Layers"]]
            diff_ids = json.loads(config)["rootfs"]["diff_ids"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ImageFileInvalid(f"malformed index or configuration: {error}") from None
        if len(diff_ids) != len(names):
            raise ImageFileInvalid("index and configuration have different numbers of layers")
        return config, names

    def member(self, name: str) -> IO[bytes]:
        """Return a reader of one member."""
        location = self._member(name)
        return io.BufferedReader(_FileSlice(self._file, location.offset, location.size), 256 << 10)

    def size(self, name: str) -> int:
        """Return the size of a member in bytes."""
        return self._member(name).size

    def _read_small(self, name: str) -> bytes:
        if self.size(name) > _MAX_JSON_BYTES:
            raise ImageFileInvalid(f"{name[:200]!r} has more than {_MAX_JSON_BYTES} bytes")
        return self.member(name).read()

    def _member(self, name: str) -> _MemberLocation:
        if name not in self._members:
            raise ImageFileInvalid(f"has no member {name[:200]!r}")
        return self._members[name]


class _FileSlice(io.RawIOBase):
    """Read-only view of `size` bytes of `file` from `offset`."""

    def __init__(self, file: IO[bytes], offset: int, size: int) -> None:
        self._file, self._offset, self._size, self._position = file, offset, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = min(max(base + offset, 0), self._size)
        return self._position

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._offset + self._position)
        data = self._file.read(min(len(buffer), self._size - self._position))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def open_image_file(path: Path) -> tuple[IO[bytes], int]:
    """Open the regular file at `path`; return it and its size. Raises ImageFileInvalid."""
    # O_NOFOLLOW: a planted link would make this container read its own files.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ImageFileInvalid(f"cannot be read: {error}") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise ImageFileInvalid("is not a regular file")
    return os.fdopen(descriptor, "rb"), status.st_size
