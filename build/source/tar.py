"""Tar headers read strictly from a stream, one member after the other. Called by build.source.archive.

Written out here rather than taken from tarfile, because hostile headers have
made that module loop, recurse and allocate without bound; this reader knows
only what a source needs and gives up on everything else. Understood: ustar,
pax (path, size) and GNU long names.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from build.source.tree import Readable

BLOCK = 512
_EXTRA_BYTES = 64 << 10
_PAX_RECORDS = 256
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
    """The stream is no tar, ends too early, or says something contradictory."""


@dataclass(frozen=True)
class Member:
    """`kind` is `file`, `directory`, or words for what is not taken; `content` lasts until the next one."""

    name: str
    kind: str
    size: int
    executable: bool
    content: "Content"


class Content:
    """The bytes of one member, no more."""

    def __init__(self, stream: Readable, size: int) -> None:
        self._stream, self.left = stream, size

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the member's end. Raises TarInvalid where the stream ends before."""
        wanted = min(size, self.left)
        if wanted <= 0:
            return b""
        data = self._stream.read(wanted)
        if not data:
            raise TarInvalid("it ends in the middle of a file")
        self.left -= len(data)
        return data


def members(stream: Readable) -> Iterator[Member]:
    """The members of a tar in order. Raises TarInvalid."""
    extra: dict[str, str] = {}
    extras = 0
    while (header := _exactly(stream, BLOCK, may_end=True)).strip(b"\0"):
        kind, size = header[156:157], _number(header[124:136])
        _check_sum(header)
        if kind in (b"x", b"g", b"L", b"K"):
            extras += 1
            if size > _EXTRA_BYTES or extras > 4:
                raise TarInvalid("its extended headers are too large or too many")
            data = _exactly(stream, size)
            _exactly(stream, -size % BLOCK)
            if kind == b"x":
                extra.update(_pax(data))
            elif kind == b"L":
                extra["path"] = _text(data.rstrip(b"\0"))
            continue
        if "size" in extra:
            size = _decimal(extra["size"])
        if kind in _WITHOUT_CONTENT:
            size = 0
        content = Content(stream, size)
        name = extra.get("path") or _ustar_name(header)
        sparse = any(key.startswith("GNU.sparse") for key in extra)
        executable = bool(_number(header[100:108]) & 0o100)
        yield Member(name, _kind(kind, name, sparse), size, executable, content)
        while content.read(1 << 16):
            pass
        _exactly(stream, -size % BLOCK)
        extra, extras = {}, 0


def _kind(flag: bytes, name: str, sparse: bool) -> str:
    if sparse:
        return "a sparse file"
    if flag == b"5":
        return "directory"
    if flag in (b"0", b"\0", b"7"):
        return "directory" if name.endswith("/") else "file"
    return _KINDS.get(flag, "no regular file")


def _ustar_name(header: bytes) -> str:
    name = header[0:100].partition(b"\0")[0]
    if header[257:263] == b"ustar\0":
        prefix = header[345:500].partition(b"\0")[0]
        if prefix:
            name = prefix + b"/" + name
    return _text(name)


def _pax(data: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    start = records = 0
    while start < len(data):
        digits, space, _ = data[start : start + 20].partition(b" ")
        records += 1
        if not space or not digits.isdigit() or records > _PAX_RECORDS:
            raise TarInvalid("a pax header is malformed")
        length = int(digits)
        record = data[start + len(digits) + 1 : start + length]
        if length <= len(digits) + 1 or start + length > len(data) or not record.endswith(b"\n"):
            raise TarInvalid("a pax header is malformed")
        key, _, value = record[:-1].partition(b"=")
        if key in (b"path", b"size") or key.startswith(b"GNU.sparse"):
            found[_text(key)] = _text(value)
        start += length
    return found


def _number(field: bytes) -> int:
    if field[:1] == b"\x80":  # GNU's binary form
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b"\0 ")
    if digits and not all(0x30 <= digit <= 0x37 for digit in digits):
        raise TarInvalid("a header's number is malformed")
    return int(digits or b"0", 8)


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise TarInvalid("a size is malformed")
    return int(text)


def _check_sum(header: bytes) -> None:
    if _number(header[148:156]) != sum(header[:148]) + 8 * 0x20 + sum(header[156:]):
        raise TarInvalid("a header's checksum is wrong")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _exactly(stream: Readable, size: int, may_end: bool = False) -> bytes:
    parts, left = [], size
    while left > 0:
        data = stream.read(left)
        if not data:
            if may_end and left == size:
                return b""
            raise TarInvalid("it ends too early")
        parts.append(data)
        left -= len(data)
    return b"".join(parts)
