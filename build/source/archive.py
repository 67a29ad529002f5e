"""Reading of a .tar.gz or .zip into a checked tree. Called by build.source.fetch_archive.

Extracts nothing to disk: reads members in order and accepts regular files only. Refuses links, devices,
encryption and decompression bombs.
"""

import io
import stat
import struct
import zipfile
import zlib
from typing import IO, Any

from build.errors import CONTEXT_INVALID, CONTEXT_TOO_LARGE, BuildRefused
from build.settings import SourceLimits
from build.source.tar import TarInvalid, members
from build.source.tree import CheckedSourceTree, TreeBuilder, checked_path
from egress.git.repository_url import printable

_RATIO_GRACE_BYTES = 1 << 20
_TAR_BYTES_PER_ENTRY = 2048
"""Headers and padding: a few blocks."""
_DIRECTORY_BYTES_PER_ENTRY = 256
_ZIP_LOCAL_HEADER_BYTES = 30
_ZIP_END_BYTES = 22
_ZIP64_END_BYTES = 56
_ZIP64_LOCATOR_BYTES = 20
_ZIP_TAIL_BYTES = _ZIP64_END_BYTES + _ZIP64_LOCATOR_BYTES + _ZIP_END_BYTES + 0xFFFF
"""The records after the central directory, and the longest comment."""
_BOMB_HINT = "Exclude large generated files."
_PACK_HINT = "Pack the source again with plain files only, for example: git archive --format=tar.gz HEAD."
# Also below the folder that was packed: its configuration may have a credential.
_GIT = ".git"
# Of macOS: attributes of the files beside it, in a zip and in a tar.
_ATTRIBUTES, _ATTRIBUTES_START = "__MACOSX", "._"
_CHUNK_BYTES = 64 << 10
_MAX_GZIP_MEMBERS = 10_000
_GZIP_WBITS = 31
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


def read_archive(packed: IO[bytes], size: int, limits: SourceLimits) -> CheckedSourceTree:
    """Return the tree in `packed`, a seekable file of `size` bytes. Raises BuildRefused."""
    start = packed.read(4)
    packed.seek(0)
    builder = TreeBuilder(limits)
    try:
        if start.startswith(b"\x1f\x8b"):
            _read_tar(packed, size, limits, builder)
        elif start in (b"PK\x03\x04", b"PK\x05\x06"):
            _read_zip(packed, size, limits, builder)
        else:
            raise BuildRefused(CONTEXT_INVALID, "the archive is neither .tar.gz nor .zip", _PACK_HINT)
    except _DAMAGED as error:
        raise BuildRefused(CONTEXT_INVALID, f"the archive is damaged: {error}", _PACK_HINT) from None
    return builder.finish()


class _GzipMembers(io.RawIOBase):
    """Concatenated members of a gzip file, bounded in number: a million empty ones would take minutes."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed, self._count, self._pending = packed, 1, b""
        self._inflating = zlib.decompressobj(_GZIP_WBITS)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            self._pending = self._pending or self._packed.read(_CHUNK_BYTES)
            if self._inflating.eof:
                self._pending = self._pending.lstrip(b"\0")  # padding of some programs
                if not self._pending:
                    return 0
                self._count += 1
                if self._count > _MAX_GZIP_MEMBERS:
                    raise TarInvalid(f"more than {_MAX_GZIP_MEMBERS} gzip members")
                self._inflating = zlib.decompressobj(_GZIP_WBITS)
            elif not self._pending:
                raise TarInvalid("the compressed data ends too early")
            data = self._inflating.decompress(self._pending, len(buffer))
            self._pending = self._inflating.unused_data or self._inflating.unconsumed_tail
            if data:
                buffer[: len(data)] = data
                return len(data)


class _Inflated:
    """The unpacked bytes of a gzip stream, bounded by limit and ratio."""

    def __init__(self, packed: IO[bytes], max_bytes: int, ratio: int) -> None:
        self._source = io.BufferedReader(_GzipMembers(packed))
        self._max_bytes, self._ratio, self._bytes_read = max_bytes, ratio, 0

    def read(self, size: int, /) -> bytes:
        data = self._source.read(size)
        self._bytes_read += len(data)
        if self._bytes_read > self._max_bytes:
            raise _ratio_exceeded(self._ratio)
        return data


def _read_tar(packed: IO[bytes], size: int, limits: SourceLimits, builder: TreeBuilder) -> None:
    limit = limits.unpacked_bytes + limits.entries * _TAR_BYTES_PER_ENTRY + _RATIO_GRACE_BYTES
    max_bytes = min(limit, size * limits.ratio + _RATIO_GRACE_BYTES)
    for member in members(_Inflated(packed, max_bytes, limits.ratio)):
        builder.count_entry()
        if _is_skipped(member.name):
            continue
        if member.kind == "directory":
            builder.add_directory(member.name)
        elif member.kind == "file":
            builder.check_room(member.size)
            builder.add(member.name, member.content, member.executable)
        else:
            raise BuildRefused(
                CONTEXT_INVALID,
                f"{printable(member.name)} is {member.kind}, which is not allowed",
                _PACK_HINT,
            )


def _read_zip(packed: IO[bytes], size: int, limits: SourceLimits, builder: TreeBuilder) -> None:
    _check_directory_size(packed, size, limits)
    with zipfile.ZipFile(packed) as archive:
        _check_overlap(archive.infolist(), size)
        if sum(member.file_size for member in archive.infolist()) > size * limits.ratio + _RATIO_GRACE_BYTES:
            raise _ratio_exceeded(limits.ratio)
        for member in archive.infolist():
            builder.count_entry()
            if _is_skipped(member.filename):
                continue
            mode = member.external_attr >> 16
            if member.filename.endswith("/"):  # is_dir() fails for an empty name
                builder.add_directory(member.filename)
                continue
            if member.flag_bits & 0x1:
                raise BuildRefused(CONTEXT_INVALID, f"{printable(member.filename)} is encrypted", _PACK_HINT)
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise BuildRefused(
                    CONTEXT_INVALID,
                    f"{printable(member.filename)} uses an unsupported compression method",
                    _PACK_HINT,
                )
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise BuildRefused(
                    CONTEXT_INVALID, f"{printable(member.filename)} is a link or special file", _PACK_HINT
                )
            builder.check_room(member.file_size)
            if member.file_size > member.compress_size * limits.ratio + _RATIO_GRACE_BYTES:
                raise _ratio_exceeded(limits.ratio)
            with archive.open(member) as content:
                builder.add(member.filename, content, bool(mode & stat.S_IXUSR))


def _check_directory_size(packed: IO[bytes], size: int, limits: SourceLimits) -> None:
    """Refuse a central directory of millions of entries, which zipfile would load as a whole."""
    start = max(0, size - _ZIP_TAIL_BYTES)
    packed.seek(start)
    tail = packed.read()
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) - end < _ZIP_END_BYTES:
        raise TarInvalid("no central directory")
    (length,) = struct.unpack_from("<L", tail, end + 12)
    locator = tail[:end][-_ZIP64_LOCATOR_BYTES:]
    if locator.startswith(b"PK\x06\x07"):  # zipfile prefers the record that it locates
        zip64_end = end - _ZIP64_LOCATOR_BYTES - _ZIP64_END_BYTES
        if struct.unpack_from("<Q", locator, 8) != (start + zip64_end,):
            raise TarInvalid("its ZIP64 record is not directly before the locator")
        length = max(length, *struct.unpack_from("<Q", tail, zip64_end + 40))
    if length > limits.entries * _DIRECTORY_BYTES_PER_ENTRY:
        raise BuildRefused(
            CONTEXT_TOO_LARGE,
            f"the archive's central directory is too long for {limits.entries} entries",
            "Exclude files that the crew does not need.",
        )


def _check_overlap(members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse overlapping entries, which let small zips unpack to enormous trees."""
    end = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        if member.header_offset < end:
            raise BuildRefused(
                CONTEXT_INVALID, f"{printable(member.filename)} overlaps another zip entry", _PACK_HINT
            )
        end = member.header_offset + _ZIP_LOCAL_HEADER_BYTES + member.compress_size
    if end > size:
        raise TarInvalid("it is truncated")


def _is_skipped(name: str) -> bool:
    parts = checked_path(name).split("/")
    return _GIT in parts or parts[0] == _ATTRIBUTES or parts[-1].startswith(_ATTRIBUTES_START)


def _ratio_exceeded(ratio: int) -> BuildRefused:
    return BuildRefused(
        CONTEXT_TOO_LARGE,
        f"the archive unpacks to more than {ratio} times its size, or beyond the limit",
        _BOMB_HINT,
    )
