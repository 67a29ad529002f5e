"""A .tar.gz or .zip read into a checked tree. Called by build.source.fetch_archive.

Nothing is extracted: members are read in order and only regular files are
taken. Links of any kind, devices, encryption and bombs are refused.
"""

import io
import stat
import struct
import zipfile
import zlib
from typing import IO, Any

from build.errors import CONTEXT_INVALID, CONTEXT_TOO_LARGE, Refused
from build.settings import Limits
from build.source.tar import TarInvalid, members
from build.source.tree import Readable, SourceTree, TreeBuilder, checked_path

_RATIO_GRACE = 1 << 20
_DIRECTORY_BYTES_PER_ENTRY = 256
# The end record of large archives and its locator, before the ordinary end record.
_ZIP64_END = 56 + 20
_PACK = "Pack the source again, plain files only (for example: git archive --format=tar.gz HEAD)."
_SKIPPED = ".git"
_CHUNK = 64 << 10
_MEMBERS = 10_000
_DAMAGED = (
    TarInvalid,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    EOFError,
    OverflowError,
    ValueError,
    struct.error,
    NotImplementedError,
)


def read_archive(packed: IO[bytes], size: int, limits: Limits) -> SourceTree:
    """The tree in `packed`, a seekable file of `size` bytes. Raises Refused."""
    start = packed.read(4)
    packed.seek(0)
    builder = TreeBuilder(limits)
    try:
        if start[:2] == b"\x1f\x8b":
            _read_tar(packed, size, limits, builder)
        elif start[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
            _read_zip(packed, size, limits, builder)
        else:
            raise Refused(CONTEXT_INVALID, "the archive is neither .tar.gz nor .zip", _PACK)
    except _DAMAGED as error:
        raise Refused(CONTEXT_INVALID, f"the archive is damaged: {error}", _PACK) from None
    return builder.finish()


class _Members(io.RawIOBase):
    """The bytes of a gzip file's members one after the other; a million empty ones would cost minutes."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed, self._count, self._waiting = packed, 1, b""
        self._inflating = zlib.decompressobj(wbits=31)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._inflating.eof:
                self._waiting = self._inflating.unused_data or self._packed.read(_CHUNK)
                self._waiting = self._waiting.lstrip(b"\0")  # some programs fill up blocks
                if not self._waiting:
                    return 0
                self._count += 1
                if self._count > _MEMBERS:
                    raise TarInvalid(f"it has more than {_MEMBERS} gzip members")
                self._inflating = zlib.decompressobj(wbits=31)
            elif not self._waiting:
                self._waiting = self._packed.read(_CHUNK)
                if not self._waiting:
                    raise TarInvalid("its compression ends too early")
            data = self._inflating.decompress(self._waiting, len(buffer))
            self._waiting = self._inflating.unconsumed_tail
            if data:
                buffer[: len(data)] = data
                return len(data)


class _Inflated:
    """The unpacked bytes of a gzip stream, never more than limit and ratio permit."""

    def __init__(self, packed: IO[bytes], most: int, ratio: int) -> None:
        self._source = io.BufferedReader(_Members(packed), 256 << 10)
        self._most, self._ratio, self._given = most, ratio, 0

    def read(self, size: int, /) -> bytes:
        data = self._source.read(size)
        self._given += len(data)
        if self._given > self._most:
            raise _too_compressed(self._ratio)
        return data


def _read_tar(packed: IO[bytes], size: int, limits: Limits, builder: TreeBuilder) -> None:
    # Headers and padding count as well, hence a few blocks for each entry.
    room = limits.unpacked_bytes + limits.entries * 2048 + _RATIO_GRACE
    most = min(room, size * limits.ratio + _RATIO_GRACE)
    for member in members(_Inflated(packed, most, limits.ratio)):
        builder.count()
        if _skipped(member.name):
            continue
        if member.kind == "directory":
            builder.directory(member.name)
        elif member.kind == "file":
            builder.expect(member.size)
            builder.distinct(member.name)
            builder.add(member.name, member.content, member.executable)
        else:
            raise Refused(
                CONTEXT_INVALID, f"{_shown(member.name)} is {member.kind}, which is not allowed", _PACK
            )


def _read_zip(packed: IO[bytes], size: int, limits: Limits, builder: TreeBuilder) -> None:
    _check_directory(packed, size, limits)
    with zipfile.ZipFile(packed) as archive:
        _check_overlap(archive.infolist(), size)
        if sum(member.file_size for member in archive.infolist()) > size * limits.ratio + _RATIO_GRACE:
            raise _too_compressed(limits.ratio)
        for member in archive.infolist():
            builder.count()
            if _skipped(member.filename):
                continue
            mode = member.external_attr >> 16
            if member.filename.endswith("/"):  # is_dir() fails for an empty name
                builder.directory(member.filename)
                continue
            if member.flag_bits & 0x1:
                raise Refused(CONTEXT_INVALID, f"{_shown(member.filename)} is encrypted", _PACK)
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise Refused(
                    CONTEXT_INVALID, f"{_shown(member.filename)} is packed in an unusual way", _PACK
                )
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise Refused(CONTEXT_INVALID, f"{_shown(member.filename)} is a link or special file", _PACK)
            builder.expect(member.file_size)
            if member.file_size > member.compress_size * limits.ratio + _RATIO_GRACE:
                raise _too_compressed(limits.ratio)
            builder.distinct(member.filename)
            with archive.open(member) as content:
                builder.add(member.filename, _Bounded(content, member.file_size), bool(mode & stat.S_IXUSR))


class _Bounded:
    """A zip member that may not grow beyond the size its directory entry names."""

    def __init__(self, content: Readable, size: int) -> None:
        self._content, self._left = content, size

    def read(self, size: int, /) -> bytes:
        data = self._content.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise Refused(CONTEXT_INVALID, "a zip entry is larger than it says", _PACK)
        return data


def _check_directory(packed: IO[bytes], size: int, limits: Limits) -> None:
    """zipfile loads the whole directory at once: a directory of millions of entries is refused before."""
    packed.seek(max(0, size - (1 << 16) - 22 - _ZIP64_END))
    tail = packed.read()
    packed.seek(0)
    found = tail.rfind(b"PK\x05\x06")
    if found < 0 or len(tail) - found < 22:
        raise TarInvalid("it has no directory")
    (length,) = struct.unpack_from("<L", tail, found + 12)
    large = tail[max(0, found - _ZIP64_END) : found]
    if large[-20:-16] == b"PK\x06\x07" and large[:4] == b"PK\x06\x06":  # what zipfile then believes instead
        length = max(length, *struct.unpack_from("<Q", large, 40))
    if length > limits.entries * _DIRECTORY_BYTES_PER_ENTRY:
        raise Refused(
            CONTEXT_TOO_LARGE,
            f"the archive's directory is too long for {limits.entries} entries",
            "Leave out what the crew does not need.",
        )


def _check_overlap(members: list[zipfile.ZipInfo], size: int) -> None:
    """Entries that share their bytes are how small zips unpack to enormous ones."""
    end = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        if member.header_offset < end:
            raise Refused(CONTEXT_INVALID, f"{_shown(member.filename)} overlaps another zip entry", _PACK)
        end = member.header_offset + 30 + member.compress_size
    if end > size:
        raise TarInvalid("it ends too early")


def _skipped(name: str) -> bool:
    return checked_path(name).partition("/")[0] == _SKIPPED


def _too_compressed(ratio: int) -> Refused:
    return Refused(
        CONTEXT_TOO_LARGE,
        f"the archive unpacks to more than {ratio} times its size, or beyond the limit",
        "Leave large generated files out.",
    )


def _shown(name: str) -> str:
    return name.encode("unicode_escape", "backslashreplace").decode()[:200]
