"""An image as one tar file, as Kaniko's --tar-path writes it, read without trust. Called by build.registry.push.

The headers are read once, strictly and in bounded number; the bytes of a member are
then read from where they lie. Nothing is extracted, no link is followed.
"""

import io
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from build.source.tar import TarInvalid, members

LAYERS = 127
_JSON_BYTES = 4 << 20
# Layers, configuration, index, and room for what other versions of the builder add.
_MEMBERS = 2 * LAYERS + 16


class ImageFileInvalid(Exception):
    """The file is not an image as Kaniko writes it."""


@dataclass(frozen=True)
class _Place:
    offset: int
    size: int


class ImageFile:
    """`file` is seekable and of `size` bytes. Raises ImageFileInvalid, here and in all methods."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._places: dict[str, _Place] = {}
        try:
            for member in members(file):
                if len(self._places) >= _MEMBERS:
                    raise ImageFileInvalid(f"it has more than {_MEMBERS} members")
                offset = file.tell()
                if member.kind != "file" or member.name in self._places or offset + member.size > size:
                    raise ImageFileInvalid(f"{member.name[:200]!r} is no file, there twice, or cut off")
                self._places[member.name] = _Place(offset, member.size)
                file.seek(offset + member.size)
                member.content.left = 0
        except TarInvalid as error:
            raise ImageFileInvalid(str(error)) from None

    def index(self) -> tuple[bytes, list[str]]:
        """The configuration, and the names of the layers from the bottom."""
        try:
            (image,) = json.loads(self._small("manifest.json"))
            config = self._small(str(image["Config"]))
            names = [str(name) for name in image["Layers"]]
            diff_ids = json.loads(config)["rootfs"]["diff_ids"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ImageFileInvalid(f"its index or configuration is malformed: {error}") from None
        if len(diff_ids) != len(names):
            raise ImageFileInvalid("it disagrees with itself about the number of layers")
        return config, names

    def member(self, name: str) -> IO[bytes]:
        """The bytes of one member."""
        place = self._place(name)
        return io.BufferedReader(_Part(self._file, place.offset, place.size), 256 << 10)

    def size(self, name: str) -> int:
        """The number of its bytes."""
        return self._place(name).size

    def _small(self, name: str) -> bytes:
        if self.size(name) > _JSON_BYTES:
            raise ImageFileInvalid(f"{name[:200]!r} has more than {_JSON_BYTES} bytes")
        return self.member(name).read()

    def _place(self, name: str) -> _Place:
        if name not in self._places:
            raise ImageFileInvalid(f"it has no {name[:200]!r}")
        return self._places[name]


class _Part(io.RawIOBase):
    """`size` bytes of `file` from `offset` on; never what lies beside them."""

    def __init__(self, file: IO[bytes], offset: int, size: int) -> None:
        self._file, self._offset, self._size, self._at = file, offset, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = min(max(base + offset, 0), self._size)
        return self._at

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._offset + self._at)
        data = self._file.read(min(len(buffer), self._size - self._at))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def open_image_file(path: Path) -> tuple[IO[bytes], int]:
    """The regular file at `path` and its size. Raises ImageFileInvalid."""
    # A link in its place would make this container read its own files.
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ImageFileInvalid(f"it cannot be read: {error}") from None
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode):
        os.close(number)
        raise ImageFileInvalid("it is no regular file")
    return os.fdopen(number, "rb"), status.st_size
