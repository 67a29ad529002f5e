"""The tar reader: every accepted header, and the limit of each field, with headers made by hand."""

import io
from collections.abc import Iterator
from functools import partial

import pytest

from build.source.tar import TarContent, TarInvalid, members

BLOCK = 512
END = bytes(2 * BLOCK)
USTAR = b"ustar\0" + b"00"
GNU = b"ustar  \0"
Read = tuple[str, str, int, bool, bytes]
"""Name, kind, size, whether it is executable, and content."""


def octal(number: int, width: int) -> bytes:
    return b"%0*o\0" % (width - 1, number)


def header(
    name: bytes,
    kind: bytes = b"0",
    size: int | bytes = 0,
    mode: bytes = b"0000644\0",
    magic: bytes = USTAR,
    prefix: bytes = b"",
) -> bytes:
    """Return a block with a correct checksum."""
    block = bytearray(BLOCK)
    block[: len(name)] = name
    block[100:108] = mode
    block[108:116] = b"0001750\0"
    block[124:136] = octal(size, 12) if isinstance(size, int) else size
    block[156:157] = kind
    block[257:265] = magic
    block[345 : 345 + len(prefix)] = prefix
    block[148:156] = b"%06o\0 " % (sum(block) + 8 * ord(" "))
    return bytes(block)


def member(name: bytes, content: bytes = b"", kind: bytes = b"0") -> bytes:
    """Return header, content and padding."""
    return header(name, kind, len(content)) + content + bytes(-len(content) % BLOCK)


def record(text: bytes) -> bytes:
    """Return a pax record of `key=value`."""
    digits = 1
    while len(b"%d %s\n" % (digits, text)) != digits:
        digits += 1
    return b"%d %s\n" % (digits, text)


def pax(*texts: bytes) -> bytes:
    return member(b"pax", b"".join(map(record, texts)), b"x")


class OneByteReads:
    """A stream that returns one byte at a time, as a slow one may."""

    def __init__(self, data: bytes) -> None:
        self._stream = io.BytesIO(data)

    def read(self, size: int, /) -> bytes:
        return self._stream.read(min(size, 1))


def read(data: bytes) -> Iterator[Read]:
    for one in members(io.BytesIO(data)):
        content = b"".join(iter(partial(one.content.read, 1000), b""))
        yield one.name, one.kind, one.size, one.executable, content


def file(name: str, content: bytes = b"", executable: bool = False) -> Read:
    return name, "file", len(content), executable, content


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            member(b"a", b"1" * 511) + member(b"b", b"2" * 512) + member(b"c", b"3" * 513),
            [file("a", b"1" * 511), file("b", b"2" * 512), file("c", b"3" * 513)],
        ),
        (member(b"n" * 100), [file("n" * 100)]),
        (header(b"n", prefix=b"\xff" * 155 + b"z"), [file("\udcff" * 155 + "/n")]),
        (header(b"n", prefix=b"12345670123", magic=GNU), [file("n")]),
        (member(b"\xff"), [file("\udcff")]),
        (header(b"a", b"\0") + member(b"b", b"1", b"7"), [file("a"), file("b", b"1")]),
        (
            member(b"a/", kind=b"\0") + member(b"b/", kind=b"0"),
            [("a/", "directory", 0, False, b""), ("b/", "directory", 0, False, b"")],
        ),
        (header(b"a", size=b"\x80" + bytes(9) + b"\2\0") + b"1" * 512, [file("a", b"1" * 512)]),
        (header(b"a", size=b"          3\0") + b"123" + bytes(509), [file("a", b"123")]),
        (header(b"a", size=bytes(12)), [file("a")]),
        (
            b"".join(
                header(b"m", mode=mode)
                for mode in (b"0000100\0", b"0000677\0", b"00000100", b"\x80" + bytes(6) + b"\100")
            ),
            [file("m", executable=executable) for executable in (True, False, True, True)],
        ),
    ],
    ids=[
        "padding",
        "full name",
        "prefix",
        "no prefix of GNU",
        "no UTF-8",
        "old kinds",
        "old directories",
        "binary size",
        "size with spaces",
        "size of NULs",
        "mode",
    ],
)
def test_headers(data: bytes, expected: list[Read]) -> None:
    assert list(read(data + END)) == expected
    assert [one.name for one in members(OneByteReads(data))] == [name for name, *_ in expected]


KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"5": "directory",
    b"6": "a pipe",
    b"S": "a sparse file",
    b"8": "not a regular file",
    b"V": "not a regular file",
}


@pytest.mark.parametrize("flag", KINDS)
def test_other_kinds_are_named(flag: bytes) -> None:
    # Links, devices, directories and pipes have no content; their size is not read.
    has_content = flag in (b"S", b"8", b"V")
    content = b"1" * 512 if has_content else b""
    data = header(b"x", flag, 512) + content + member(b"next", b"2") + END
    assert list(read(data)) == [
        ("x", KINDS[flag], len(content), False, content),
        file("next", b"2"),
    ]


def test_content_that_is_not_read_is_skipped() -> None:
    data = member(b"a", b"1" * 200_000) + member(b"b") + END
    assert [one.name for one in members(io.BytesIO(data))] == ["a", "b"]


def test_content_is_read_in_parts() -> None:
    content = TarContent(io.BytesIO(b"1234567"), 5)
    assert [content.read(3), content.read(3), content.read(3)] == [b"123", b"45", b""]


@pytest.mark.parametrize("end", [b"", bytes(BLOCK), END, END + b"anything"])
def test_end(end: bytes) -> None:
    assert list(read(member(b"a", b"1") + end)) == [file("a", b"1")]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (pax(b"path=" + b"p" * 300, b"size=3"), file("p" * 300, b"123")),
        (pax(b"size=3") + pax(b"path=p"), file("p", b"123")),
        (pax(b"size=3", b"path=a=b"), file("a=b", b"123")),
        (pax(b"size=3", b"path=", b"comment=\xff"), file("x", b"123")),
        (pax(b"size=3") + member(b"L", b"longX\0\0", b"L"), file("longX", b"123")),
        (pax(b"size=3") + member(b"K", b"target\0", b"K"), file("x", b"123")),
        (pax(b"size=3") + member(b"g", record(b"path=ignored"), b"g"), file("x", b"123")),
        (pax(b"size=3", b"GNU.sparse.major=1"), ("x", "a sparse file", 3, False, b"123")),
        (pax(b"size=3", b"GNU=sparse"), file("x", b"123")),
    ],
    ids=[
        "path and size",
        "two headers",
        "= in a value",
        "empty path",
        "long name",
        "long link",
        "global",
        "sparse",
        "unknown key",
    ],
)
def test_extended_headers(headers: bytes, expected: Read) -> None:
    data = headers + header(b"x", size=9) + b"123" + bytes(509)
    # They hold for one member only.
    assert list(read(data + member(b"y", b"4") + END)) == [expected, file("y", b"4")]
    assert next(read(headers + header(b"x", b"5") + END))[2] == 0


def pax_of(size: int) -> bytes:
    """Return a pax header of one record of `size` bytes."""
    return member(b"pax", b"%d c=%s\n" % (size, b"v" * (size - len(b"%d c=\n" % size))), b"x")


@pytest.mark.parametrize(
    ("accepted", "refused", "problem"),
    [
        (pax_of(64 << 10), pax_of((64 << 10) + 1), "too large"),
        (pax(b"c=1") * 4 + member(b"a") + pax(b"c=1") * 4, pax(b"c=1") * 5, "too many"),
        (pax(*[b"c=1"] * 256), pax(*[b"c=1"] * 257), "pax header is malformed"),
        (pax(b"size=" + b"0" * 19), pax(b"size=" + b"0" * 20), "size is malformed"),
        (header(b"a", mode=b"0000007\0"), header(b"a", mode=b"0000008\0"), "number is malformed"),
        (header(b"a", mode=b"0000000\0"), header(b"a", mode=b"000000/\0"), "number is malformed"),
        (header(b"a", mode=b" 000000\0"), header(b"a", mode=b"X000000\0"), "number is malformed"),
        (header(b"a", size=b"\x80" + bytes(11)), header(b"a", size=b"\xff" * 12), "number is malformed"),
    ],
    ids=["bytes", "headers", "records", "digits of a size", "7 and 8", "0 and /", "space", "negative size"],
)
def test_limits_of_headers(accepted: bytes, refused: bytes, problem: str) -> None:
    assert list(read(accepted + header(b"last") + END))[-1] == file("last")
    with pytest.raises(TarInvalid, match=problem):
        list(read(refused + header(b"last") + END))


@pytest.mark.parametrize("records", [b"3 \n", b"5 c=\n", b"0000000000000000023 c=\n", b"5 c=\n5 c=\n"])
def test_pax_records(records: bytes) -> None:
    assert list(read(member(b"pax", records, b"x") + header(b"a"))) == [file("a")]


@pytest.mark.parametrize(
    "records",
    [
        b"0 \n",
        b"1 \n",
        b"2 \n",
        b"6 c=\n",
        b"4 c=\n",
        b"5 c=1",
        b"-5 c=\n",
        b"5",
        b" c=\n",
        b"00000000000000000024 c=\n",
    ],
)
def test_malformed_pax_records(records: bytes) -> None:
    with pytest.raises(TarInvalid, match="pax header is malformed"):
        list(read(member(b"pax", records, b"x") + header(b"a")))


@pytest.mark.parametrize("size", ["-1", "", "1.0", "\u0663", "\u00b2"])
def test_malformed_sizes_of_pax(size: str) -> None:
    with pytest.raises(TarInvalid, match="size is malformed"):
        list(read(pax(f"size={size}".encode()) + header(b"a")))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"b" + header(b"a")[1:], "checksum"),
        (header(b"a")[:-1] + b"\1", "checksum"),
        (header(b"a")[:-1], "truncated"),
        (header(b"a") + b"\1", "truncated"),
        (member(b"a", b"12")[: BLOCK + 1], "middle of a file"),
        (b"X" * BLOCK, "number is malformed"),
        (member(b"a", b"1")[: BLOCK + 1], "truncated"),
        (member(b"a", b"1")[:-1], "truncated"),
        (pax(b"c=1")[:BLOCK], "truncated"),
        (pax(b"c=1")[: BLOCK + 1], "truncated"),
        (pax(b"c=1")[:-1], "truncated"),
    ],
)
def test_damaged_tar(data: bytes, problem: str) -> None:
    with pytest.raises(TarInvalid, match=problem):
        list(read(data))


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (pax(b"size=9999999999999999999") + header(b"a"), 10**19 - 1),
        (header(b"a", size=b"\x80\1" + bytes(10)), 1 << 80),
        (header(b"a", size=b"777777777777"), (8 << 33) - 1),
    ],
    ids=["19 digits of pax", "binary", "12 octal digits"],
)
def test_largest_sizes(data: bytes, size: int) -> None:
    assert next(members(io.BytesIO(data))).size == size
