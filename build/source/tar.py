"""Strict streaming tar reader. Called by build.source.archive and build.image.image_file.

Replaces tarfile, which hostile headers have made loop, recurse and allocate without bound; this reader
supports only ustar, pax (path, size) and GNU long names, and rejects everything else.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from build.source.tree import Readable

BLOCK_BYTES = 512
_CHUNK_BYTES = 64 << 10
_MAX_EXTENDED_BYTES = 64 << 10
_MAX_PAX_RECORDS = 256
_WITHOUT_CONTENT = (b"1", b"2", b"3", b"4", b"5", b"6")
_KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a pipe",
    b"S": "a sparse file",
}


class TarInvalid(ValueError):
    """The stream is not a tar, is truncated, or contradicts itself."""


@dataclass(frozen=True)
class TarMember:
    """`kind` is `file`, `directory` or describes another type; `content` is valid until the next member."""

    name: str
    kind: str
    size: int
    executable: bool
    content: "TarContent"


class TarContent:
    """Reader of one member's bytes."""

    def __init__(self, stream: Readable, size: int) -> None:
        self._stream, self.bytes_left = stream, size

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the member's end. Raises TarInvalid on a truncated stream."""
        count = min(size, self.bytes_left)
        if count <= 0:
            return b""
        data = self._stream.read(count)
        if not data:
            raise TarInvalid("it ends in the middle of a file")
        self.bytes_left -= len(data)
        return data


def members(stream: Readable) -> Iterator[TarMember]:
    """Yield the members of a tar in order. Raises TarInvalid."""
    overrides: dict[str, str] = {}
    extended_headers = 0
    while (header := _read_exactly(stream, BLOCK_BYTES, may_end=True)).strip(b"\0"):
        kind, size = header[156:157], _parse_number(header[124:136])
        _verify_checksum(header)
        if kind in (b"x", b"g", b"L", b"K"):
            extended_headers += 1
            if size > _MAX_EXTENDED_BYTES or extended_headers > 4:
                raise TarInvalid("extended headers are too large or too many")
            data = _read_exactly(stream, size)
            _read_exactly(stream, -size % BLOCK_BYTES)
            if kind == b"x":
                overrides.update(_parse_pax(data))
            elif kind == b"L":
                overrides["path"] = _decode(data.rstrip(b"\0"))
            continue
        if "size" in overrides:
            size = _parse_decimal(overrides["size"])
        if kind in _WITHOUT_CONTENT:
            size = 0
        content = TarContent(stream, size)
        name = overrides.get("path") or _ustar_name(header)
        sparse = any(key.startswith("GNU.sparse") for key in overrides)
        executable = bool(_parse_number(header[100:108]) & 0o100)
        yield TarMember(name, _kind(kind, name, sparse), size, executable, content)
        while content.read(_CHUNK_BYTES):
            pass
        _read_exactly(stream, -size % BLOCK_BYTES)
        overrides, extended_headers = {}, 0


def _kind(flag: bytes, name: str, sparse: bool) -> str:
    if sparse:
        return "a sparse file"
    if flag == b"5":
        return "directory"
    if flag in (b"0", b"\0", b"7"):
        return "directory" if name.endswith("/") else "file"
    return _KINDS.get(flag, "not a regular file")


def _ustar_name(header: bytes) -> str:
    name = header[0:100].partition(b"\0")[0]
    if header[257:263] == b"ustar\0":
        prefix = header[345:500].partition(b"\0")[0]
        if prefix:
            name = prefix + b"/" + name
    return _decode(name)


def _parse_pax(data: bytes) -> dict[str, str]:
    records_by_key: dict[str, str] = {}
    start = records = 0
    while start < len(data):
        digits, space, _ = data[start : start + 20].partition(b" ")
        records += 1
        if not space or not digits.isdigit() or records > _MAX_PAX_RECORDS:
            raise TarInvalid("a pax header is malformed")
        length = int(digits)
        record = data[start + len(digits) + 1 : start + length]
        if start + length > len(data) or not record.endswith(b"\n"):
            raise TarInvalid("a pax header is malformed")
        key, _, value = record[:-1].partition(b"=")
        if key in (b"path", b"size") or key.startswith(b"GNU.sparse"):
            records_by_key[_decode(key)] = _decode(value)
        start += length
    return records_by_key


def _parse_number(field: bytes) -> int:
    if field[:1] == b"\x80":  # GNU's binary format
        return int.from_bytes(field[1:])
    digits = field.strip(b"\0 ")
    if digits and not all(0x30 <= digit <= 0x37 for digit in digits):
        raise TarInvalid("a header's number is malformed")
    return int(digits or b"0", 8)


def _parse_decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise TarInvalid("a size is malformed")
    return int(text)


def _verify_checksum(header: bytes) -> None:
    if _parse_number(header[148:156]) != sum(header[:148]) + 8 * 0x20 + sum(header[156:]):
        raise TarInvalid("a header's checksum is wrong")


def _decode(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _read_exactly(stream: Readable, size: int, may_end: bool = False) -> bytes:
    parts, remaining = [], size
    while remaining > 0:
        data = stream.read(remaining)
        if not data:
            if may_end and remaining == size:
                return b""
            raise TarInvalid("it is truncated")
        parts.append(data)
        remaining -= len(data)
    return b"".join(parts)
