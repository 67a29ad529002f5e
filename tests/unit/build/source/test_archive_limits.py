"""Limits of archives at their exact values: what is accepted, and one byte or entry more, which is not."""

import gzip
import io
import random
import stat
import struct
import tarfile
import zipfile
import zlib

import pytest

from build.errors import BuildRefused
from build.settings import SourceLimits
from build.source.archive import read_archive
from build.source.tree import CheckedSourceTree
from egress.git.repository_url import printable

GRACE = 1 << 20
"""Bytes that an archive may unpack to in addition to the ratio."""
CENTRAL, LOCAL_BYTES, CENTRAL_BYTES = b"PK\x01\x02", 30, 46
SIZE, UNPACKED_SIZE, CRC, FLAGS, METHOD, OFFSET = 20, 24, 16, 8, 10, 42


def read(data: bytes, **limits: int) -> CheckedSourceTree:
    return read_archive(io.BytesIO(data), len(data), SourceLimits(**limits))


def refusal(data: bytes, **limits: int) -> tuple[str, str]:
    """Return reason and message of the refusal."""
    with pytest.raises(BuildRefused) as raised:
        read(data, **limits)
    assert raised.value.hint and raised.value.message.isprintable()
    return raised.value.reason, raised.value.message


def plain_tar(*members: tuple[str, bytes]) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members:
            header = tarfile.TarInfo(name)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    return plain.getvalue()


def tar(*members: tuple[str, bytes], size: int = 0) -> bytes:
    """Return a tar.gz, padded to `size`."""
    return gzip.compress(plain_tar(*members), mtime=0).ljust(size, b"\0")


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes], size: int = 0, comment: bytes = b"") -> bytes:
    """Return a zip, padded to `size` with a comment."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
        archive.comment = comment
    data = packed.getvalue()
    return zipped(*members, comment=b"c" * (size - len(data))) if size > len(data) else data


def info(name: str, mode: int = 0, comment: bytes = b"") -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)
    member.external_attr, member.comment, member.compress_type = mode << 16, comment, zipfile.ZIP_DEFLATED
    return member


def patched(data: bytes, number: int, field: int, form: str, value: int) -> bytes:
    """Return the zip with another value in the central directory entry of that number."""
    changed, start = bytearray(data), -1
    for _ in range(number + 1):
        start = data.index(CENTRAL, start + 1)
    struct.pack_into(form, changed, start + field, value)
    return bytes(changed)


def with_zip64(data: bytes, extension: bytes = b"", offset: int = 0, length: int | None = None) -> bytes:
    """Return the zip with a ZIP64 record; change its extension, its offset, or the length in it."""
    end = data.rindex(b"PK\x05\x06")
    count, real_length, start = struct.unpack_from("<HLL", data, end + 10)
    record = struct.pack(
        "<4sQHHLLQQQQ",
        *(b"PK\x06\x06", 44 + len(extension), 45, 45, 0, 0, count, count),
        *(real_length if length is None else length, start),
    )
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, end + offset, 1)
    return data[:end] + record + extension + locator + data[end:]


def test_ratio_of_a_tar() -> None:
    # A header, the content, and the first block of the end: 2 * 5120 + GRACE.
    content = bytes(GRACE + 2 * 5120 - 1024)
    assert read(tar(("a", content), size=5120), ratio=2).bytes == len(content)
    reason, message = refusal(tar(("a", content), size=5119), ratio=2)
    assert reason == "ContextTooLarge" and "2 times" in message


def test_bytes_of_a_tar_with_skipped_files() -> None:
    limits = {"unpacked_bytes": 1024, "entries": 2, "ratio": 100_000}
    # Two headers and the first block of the end beside it; 2048 bytes may be added for each entry.
    skipped = bytes(1024 + 2 * 2048 + GRACE - 3 * 512)
    assert list(read(tar((".git/x", skipped), ("a", b"")), **limits)) == ["a"]
    reason, message = refusal(tar((".git/x", skipped + b"1"), ("a", b"")), **limits)
    assert reason == "ContextTooLarge" and "beyond the limit" in message


@pytest.mark.parametrize("pack", [tar, zipped])
def test_unpacked_bytes_and_entries(pack) -> None:
    members = [("a", b"1" * 60), ("b", b"2" * 40)]
    assert read(pack(*members), unpacked_bytes=100, entries=2).bytes == 100
    assert refusal(pack(*members), unpacked_bytes=99) == (
        "ContextTooLarge",
        "the source unpacks to more than 99 bytes",
    )
    # A directory and a skipped file are entries.
    for other in ("d/", ".git/x"):
        reason, message = refusal(pack(("a", b""), (other, b"")), entries=1)
        assert reason == "ContextTooLarge" and "1 entries" in message


def test_declared_size_is_refused_before_the_content_is_read() -> None:
    header = tarfile.TarInfo("a")
    header.size = 101
    data = gzip.compress(header.tobuf(tarfile.USTAR_FORMAT), mtime=0)
    assert refusal(data, unpacked_bytes=100)[0] == "ContextTooLarge"
    assert refusal(data, unpacked_bytes=101) == (
        "ContextInvalid",
        "the archive is damaged: it ends in the middle of a file",
    )


def test_number_of_gzip_members() -> None:
    empty = gzip.compress(b"", mtime=0)
    assert list(read(empty * 9_999 + tar(("a", b"")))) == ["a"]
    reason, message = refusal(empty * 10_000 + tar(("a", b"")))
    assert reason == "ContextInvalid" and "10000 gzip members" in message


def test_gzip_member_that_ends_with_a_chunk() -> None:
    plain = plain_tar(("a", random.Random(1).randbytes(100_000)))
    length = 65_536 - len(gzip.compress(plain[:60_000], 0)) + 60_000
    first = gzip.compress(plain[:length], 0)
    assert len(first) == 65_536
    assert read(first + gzip.compress(plain[length:]))["a"] == plain[512:100_512]


@pytest.mark.parametrize("between", [b"X", b" \n", b"\0X", zlib.compress(b"")])
def test_only_zeros_may_be_between_gzip_members(between: bytes) -> None:
    plain = plain_tar(("a", b"1"))
    first, second = gzip.compress(plain[:1000]), gzip.compress(plain[1000:])
    assert dict(read(first + b"\0\0" + second)) == {"a": b"1"}
    reason, message = refusal(first + between + second)
    assert reason == "ContextInvalid" and "damaged" in message


class ReadInChunks(io.BytesIO):
    """A file that refuses to be read as a whole."""

    def read(self, size: int | None = None, /) -> bytes:
        assert size is not None and 0 < size <= GRACE
        return super().read(size)


def test_tar_is_read_in_chunks() -> None:
    data = tar(("a", b"1"))
    assert dict(read_archive(ReadInChunks(data), len(data), SourceLimits())) == {"a": b"1"}


def test_ratio_of_a_zip() -> None:
    members = ("a", bytes(GRACE)), ("b", bytes(2 * 5000))
    assert read(zipped(*members, size=5000), ratio=2).bytes == GRACE + 2 * 5000
    reason, message = refusal(zipped(*members, size=4999), ratio=2)
    assert reason == "ContextTooLarge" and "2 times" in message


def test_ratio_of_a_zip_entry() -> None:
    data = zipped(("a", bytes(GRACE + 2 * 3000)), size=5000)
    assert read(patched(data, 0, SIZE, "<L", 3000), ratio=2).bytes == GRACE + 2 * 3000
    reason, message = refusal(patched(data, 0, SIZE, "<L", 2999), ratio=2)
    assert reason == "ContextTooLarge" and "2 times" in message


def test_zip_entry_ends_within_the_file() -> None:
    data = zipped(("a", b"1"))
    assert read(patched(data, 0, SIZE, "<L", len(data) - LOCAL_BYTES))["a"] == b"1"
    reason, message = refusal(patched(data, 0, SIZE, "<L", len(data) - LOCAL_BYTES + 1))
    assert reason == "ContextInvalid" and "truncated" in message


def test_zip_entries_do_not_overlap() -> None:
    data = zipped(("a", b"1"), ("ü", b"2"))
    end = LOCAL_BYTES + zipfile.ZipFile(io.BytesIO(data)).getinfo("a").compress_size
    assert refusal(patched(data, 1, OFFSET, "<L", end - 1)) == (
        "ContextInvalid",
        "ü overlaps another zip entry",
    )
    assert "overlaps" not in refusal(patched(data, 1, OFFSET, "<L", end))[1]


def test_length_of_the_central_directory_of_a_zip() -> None:
    # 256 bytes for each entry.
    comment = b"c" * (4 * 256 - CENTRAL_BYTES - len("a"))
    assert list(read(zipped((info("a", comment=comment), b"")), entries=4)) == ["a"]
    reason, message = refusal(zipped((info("a", comment=comment + b"c"), b"")), entries=4)
    assert reason == "ContextTooLarge" and "4 entries" in message
    data = bytearray(zipped(("a", b"")))
    struct.pack_into("<L", data, len(data) - 10, 1 << 31)
    assert refusal(bytes(data))[0] == "ContextTooLarge"


def test_end_record_within_a_file_of_a_zip_is_content() -> None:
    member = info("a")
    member.compress_type = zipfile.ZIP_STORED
    content = b"PK\x05\x06" + b"\xff" * 18
    assert dict(read(zipped((member, content)))) == {"a": content}


@pytest.mark.parametrize("comment", [b"", b"c" * 65_535], ids=["no comment", "longest comment"])
def test_central_directory_of_zip64(comment: bytes) -> None:
    data = zipped(("a", b"1"), comment=comment)
    assert dict(read(with_zip64(data), entries=1)) == {"a": b"1"}
    for length in (257, 1 << 63):
        assert refusal(with_zip64(data, length=length), entries=1)[0] == "ContextTooLarge"
    # zipfile of newer Pythons reads the record where the locator says, older ones directly before it.
    for moved in (with_zip64(data, b"extension"), with_zip64(data, offset=-1), with_zip64(data, offset=1)):
        reason, message = refusal(moved, entries=1)
        assert reason == "ContextInvalid" and "ZIP64" in message


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"PK\x03\x04", "no central directory"),
        (zipped(("a", b"1"))[:-1], "no central directory"),
        (zipped(("a", b"1"))[:-22], "no central directory"),
        (zipped(("a", b"1"), comment=b"PK\x05\x06"), "no central directory"),
        (b"PK\x03\x04PK\x06\x07" + struct.pack("<LqL", 0, -52, 1) + zipped(), "ZIP64"),
        (patched(zipped(("a", b"1")), 0, CRC, "<L", 1), "CRC"),
        (patched(zipped(("a", b"1")), 0, OFFSET, "<L", 1), "header"),
        (patched(zipped(("a", b"1")), 0, UNPACKED_SIZE, "<L", 0), "CRC"),
    ],
)
def test_damaged_zip(data: bytes, problem: str) -> None:
    reason, message = refusal(data)
    assert reason == "ContextInvalid" and "damaged" in message and problem in message


def test_content_of_a_zip_entry_ends_at_its_declared_size() -> None:
    data = patched(zipped(("a", b"1" * 1000)), 0, UNPACKED_SIZE, "<L", 10)
    assert dict(read(patched(data, 0, CRC, "<L", zlib.crc32(b"1" * 10)))) == {"a": b"1" * 10}


@pytest.mark.parametrize(
    ("mode", "executable"), [(0, False), (0o100, True), (stat.S_IFREG | 0o700, True), (0o677, False)]
)
def test_mode_of_a_zip_entry(mode: int, executable: bool) -> None:
    assert read(zipped((info("a", mode), b""))).entry("a").executable is executable


def test_other_methods_and_flags_of_zip_entries() -> None:
    data = zipped(("a", b"1"))
    for flags in (2, 4, 8, 0x800):
        assert dict(read(patched(data, 0, FLAGS, "<H", flags))) == {"a": b"1"}
    name = "\u202e" + "n" * 200
    data = zipped((name, b"1"))
    assert refusal(patched(data, 0, FLAGS, "<H", 0x801)) == (
        "ContextInvalid",
        f"{printable(name)} is encrypted",
    )
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 99):
        reason, message = refusal(patched(data, 0, METHOD, "<H", method))
        assert reason == "ContextInvalid" and message.startswith(printable(name))
        assert "compression method" in message


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFDIR])
def test_special_files_in_a_zip(kind: int) -> None:
    assert refusal(zipped((info("x", kind | 0o644), b""))) == (
        "ContextInvalid",
        "x is a link or special file",
    )


@pytest.mark.parametrize("pack", [tar, zipped])
def test_files_of_git_directories_and_of_macos_are_skipped(pack) -> None:
    skipped = [(name, b"0") for name in (".git/a/b", "__MACOSX/._x", "./.git/c", "a/.git/config")]
    kept = [(name, b"1") for name in (".gitignore", "a/.github/config", "b")]
    assert dict(read(pack(*skipped, ("d/", b""), *kept))) == dict(kept)
    assert dict(read(pack((".git", b"gitdir: x"), ("b", b"1")))) == {"b": b"1"}
    # Their names are checked nevertheless.
    assert refusal(pack((".git/../x", b""), ("b", b"1")))[0] == "ContextInvalid"


def test_empty_archives() -> None:
    for data in (tar(), zipped()):
        assert refusal(data) == ("ContextInvalid", "the source has no files")


@pytest.mark.parametrize("data", [b"", b"\x1f", b"PK\x01\x02", b"plain text"])
def test_other_formats(data: bytes) -> None:
    reason, message = refusal(data)
    assert reason == "ContextInvalid" and "neither .tar.gz nor .zip" in message
