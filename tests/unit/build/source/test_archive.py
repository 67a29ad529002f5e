"""Archives: supported formats, and refusal of hostile ones with bounded work."""

import gzip
import io
import random
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.errors import BuildRefused
from build.settings import SourceLimits
from build.source.archive import read_archive
from build.source.tree import CheckedSourceTree

LIMITS = SourceLimits(context_bytes=1 << 20, unpacked_bytes=4 << 20, entries=50, ratio=100)


def read(data: bytes, limits: SourceLimits = LIMITS) -> CheckedSourceTree:
    return read_archive(io.BytesIO(data), len(data), limits)


def refusal(data: bytes, limits: SourceLimits = LIMITS) -> BuildRefused:
    with pytest.raises(BuildRefused) as raised:
        read(data, limits)
    return raised.value


def tar(*members: tuple[str, bytes] | tarfile.TarInfo, form: int = tarfile.PAX_FORMAT) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=form) as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member, io.BytesIO(bytes(member.size)))
            else:
                header = tarfile.TarInfo(member[0])
                header.size = len(member[1])
                archive.addfile(header, io.BytesIO(member[1]))
    return packed.getvalue()


def special(name: str, kind: bytes, link: str = "", size: int = 0, mode: int = 0o644) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname, header.size, header.mode = kind, link, size, mode
    return header


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return packed.getvalue()


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_tar_formats(form: int) -> None:
    long = f"{'d' * 90}/{'e' * 60}/x.py"
    tree = read(
        tar(
            special("./", tarfile.DIRTYPE),
            special("./bin", tarfile.DIRTYPE),
            ("./main.py", b"print(1)\n"),
            (long, b"2"),
            special("bin/run", tarfile.REGTYPE, mode=0o755),
            form=form,
        )
    )
    assert dict(tree) == {"main.py": b"print(1)\n", long: b"2", "bin/run": b""}
    assert tree.entry("bin/run").executable
    assert not tree.entry("main.py").executable


def test_long_name_in_pax() -> None:
    name = "ü" * 100 + ".py"
    assert list(read(tar((name, b"")))) == [name]


def test_zip() -> None:
    run = zipfile.ZipInfo("bin/run")
    run.external_attr = (stat.S_IFREG | 0o755) << 16
    tree = read(zipped(("main.py", b"1"), (run, b"2"), ("empty/", b"")))
    assert dict(tree) == {"main.py": b"1", "bin/run": b"2"}
    assert tree.entry("bin/run").executable


def test_hash_is_independent_of_the_archive_format() -> None:
    assert read(tar(("a", b"1"), ("b", b"2"))).hash == read(zipped(("b", b"2"), ("a", b"1"))).hash


@pytest.mark.parametrize("pack", [tar, zipped])
@pytest.mark.parametrize("above", ["", "crew/", "crew/libs/shared/"])
def test_git_directory_is_skipped(pack: Callable[..., bytes], above: str) -> None:
    kept = [f"{above}.github/x", f"{above}main.py"]
    packed = pack((f"{above}.git/config", b"secret"), *((name, b"") for name in kept))
    assert list(read(packed)) == kept


@pytest.mark.parametrize("pack", [tar, zipped])
def test_attributes_of_macos_are_skipped(pack: Callable[..., bytes]) -> None:
    attributes = ("./._crew", "crew/._main.py", "__MACOSX/crew/._main.py")
    packed = pack(*((name, b"\0\5\x16\7") for name in attributes), ("crew/main.py", b""), ("crew/_.py", b""))
    assert list(read(packed)) == ["crew/_.py", "crew/main.py"]


EVIL_NAMES = [
    "../x",
    "a/../../x",
    "/etc/passwd",
    "..",
    "a\\..\\b",
    "C:/x",
    "a\nb",
    "a\x7f",
    "x/" + "n" * 256,
    ".wh.x",
]


@pytest.mark.parametrize("name", EVIL_NAMES)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_hostile_names(name: str, kind: str) -> None:
    error = refusal(tar((name, b"")) if kind == "tar" else zipped((name, b"")))
    assert error.reason == "ContextInvalid"


@pytest.mark.parametrize(
    ("member", "words"),
    [
        (special("l", tarfile.SYMTYPE, "/etc/passwd"), "a symbolic link"),
        (special("l", tarfile.SYMTYPE, "main.py"), "a symbolic link"),
        (special("l", tarfile.LNKTYPE, "main.py"), "a hard link"),
        (special("l", tarfile.CHRTYPE), "a device"),
        (special("l", tarfile.BLKTYPE), "a device"),
        (special("l", tarfile.FIFOTYPE), "a pipe"),
        (special("l", b"Z"), "not a regular file"),
    ],
)
def test_links_and_devices(member: tarfile.TarInfo, words: str) -> None:
    error = refusal(tar(("main.py", b""), member))
    assert error.reason == "ContextInvalid"
    assert f"l is {words}" in error.message


def test_links_and_encryption_in_a_zip() -> None:
    link = zipfile.ZipInfo("l")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert "link" in refusal(zipped((link, b"/etc/passwd"))).message
    data = bytearray(zipped(("a", b"1")))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert "encrypted" in refusal(bytes(data)).message


@pytest.mark.parametrize(
    "members",
    [
        [("a", b"1"), ("a", b"2")],
        [("a", b"1"), ("./a", b"2")],
        [("a", b"1"), ("a/b", b"2")],
        [("a/b", b"1"), ("a", b"2")],
    ],
)
def test_duplicate_paths(members: list[tuple[str, bytes]]) -> None:
    assert refusal(tar(*members)).reason == "ContextInvalid"


@pytest.mark.parametrize("pack", [tar, zipped])
def test_paths_that_differ_in_case_only(pack) -> None:
    tree = read(pack(("Main.py", b"1"), ("main.py", b"2"), ("Lib/a", b"3"), ("lib/a", b"4")))
    assert dict(tree) == {"Main.py": b"1", "main.py": b"2", "Lib/a": b"3", "lib/a": b"4"}


def test_too_many_entries() -> None:
    error = refusal(tar(*[(f"f{number}", b"") for number in range(51)]))
    assert (error.reason, "more than 50 entries" in error.message) == ("ContextTooLarge", True)
    assert refusal(zipped(*[(f"f{number}", b"") for number in range(51)])).reason == "ContextTooLarge"
    assert refusal(zipped(*[(f"f{number}", b"") for number in range(2000)])).reason == "ContextTooLarge"


def test_too_large_unpacked() -> None:
    import random

    noise = random.Random(1).randbytes(64 << 10) * 80  # compresses, but not like a bomb
    assert refusal(tar(("a", noise))).reason == "ContextTooLarge"
    assert refusal(zipped(("a", noise))).reason == "ContextTooLarge"


def test_decompression_bomb() -> None:
    limits = SourceLimits(unpacked_bytes=1 << 30, entries=50, ratio=100)
    zeros = bytes(64 << 20)
    for data in (tar(("a", zeros)), zipped(("a", zeros))):
        error = refusal(data, limits)
        assert error.reason == "ContextTooLarge"
        assert "100 times" in error.message


def test_endless_extended_header() -> None:
    header = special("x", b"x", size=0)
    block = bytearray(header.tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = b"77777777777\0"
    block[148:156] = b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    assert "extended headers" in refusal(gzip.compress(bytes(block) + bytes(10 << 20))).message


def test_many_extended_headers() -> None:
    block = special("x", b"x").tobuf(tarfile.USTAR_FORMAT)
    block = bytearray(block[:512])
    assert "extended headers" in refusal(gzip.compress(bytes(block) * 5000)).message


def test_negative_size() -> None:
    block = bytearray(special("x", tarfile.REGTYPE).tobuf(tarfile.USTAR_FORMAT)[:512])
    block[124:136] = b"\xff" * 12
    block[148:156] = b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    assert refusal(gzip.compress(bytes(block) + bytes(1024))).reason == "ContextInvalid"


def test_directory_size_in_the_zip64_record() -> None:
    data = bytearray(zipped(*[(f"f{number}", b"") for number in range(2000)]))
    end = data.rindex(b"PK\x05\x06")
    length, start = struct.unpack_from("<LL", data, end + 12)
    record = struct.pack("<4sQHHLLQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 2000, 2000, length, start)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
    struct.pack_into("<L", data, end + 12, 100)
    data[end:end] = record + locator
    assert len(zipfile.ZipFile(io.BytesIO(data)).infolist()) == 2000
    assert "directory is too long" in refusal(bytes(data)).message


def test_overlapping_zip_entries() -> None:
    data = bytearray(zipped(("a", b"1" * 100), ("b", b"2" * 100)))
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    struct.pack_into("<L", data, second + 42, 5)
    assert "overlaps" in refusal(bytes(data)).message


def test_zip_with_a_wrong_size() -> None:
    data = bytearray(zipped(("a", b"1" * 100)))
    struct.pack_into("<L", data, data.index(b"PK\x01\x02") + 24, 10)
    assert refusal(bytes(data)).reason == "ContextInvalid"


@pytest.mark.parametrize(
    "data",
    [b"", b"PK\x03\x04", b"\x1f\x8b", b"hello", tar(("a", b"1" * 5000))[:-20]],
    ids=["nothing", "zip", "gzip", "text", "truncated"],
)
def test_not_an_archive(data: bytes) -> None:
    assert refusal(data).reason == "ContextInvalid"


def test_empty_archive() -> None:
    assert "has no files" in refusal(tar()).message


@settings(deadline=None)
@given(st.data())
def test_damaged_archive(data: st.DataObject) -> None:
    make = data.draw(st.sampled_from([tar, zipped]))
    whole = bytearray(make(("main.py", b"print(1)\n" * 20), ("a/b.txt", b"x")))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        tree = read(bytes(whole))
    except BuildRefused as error:
        assert error.reason in ("ContextInvalid", "ContextTooLarge")
    else:
        assert tree.bytes <= LIMITS.unpacked_bytes


@settings(deadline=None)
@given(st.binary(max_size=2048))
def test_random_bytes(noise: bytes) -> None:
    try:
        read(gzip.compress(noise, mtime=0))
    except BuildRefused as error:
        assert error.reason in ("ContextInvalid", "ContextTooLarge")


def pax(name: str, **records: str) -> tarfile.TarInfo:
    header = special(name, tarfile.REGTYPE)
    header.pax_headers = records
    return header


# Known attacks on extraction all need a link, a parent reference, or a misleading header.
HOSTILE: dict[str, bytes] = {
    "a chain of links past PATH_MAX (CVE-2025-4517)": tar(
        *[special("/".join(["d" * 200] * depth), tarfile.DIRTYPE) for depth in range(1, 18)],
        special("/".join(["d" * 200] * 17) + "/up", tarfile.SYMTYPE, "../" * 17 + "etc"),
        ("flag", b""),
    ),
    "a link to a link (CVE-2025-4330, CVE-2025-4138)": tar(
        special("a", tarfile.SYMTYPE, "b/../.."), special("b", tarfile.SYMTYPE, "a")
    ),
    "a hard link to a symbolic one (CVE-2025-4435)": tar(
        special("s", tarfile.SYMTYPE, "../x"), special("h", tarfile.LNKTYPE, "s")
    ),
    "a directory with a parent reference (CVE-2024-12718)": tar(special("a/../..", tarfile.DIRTYPE)),
    "a negative size (CVE-2025-8194)": tar(pax("x", size="-512")),
    "an enormous size": tar(pax("x", size="9" * 30)),
    "a parent reference by pax": tar(pax("x", path="../x")),
    "an absolute name by GNU": tar(("/" + "n" * 150, b""), form=tarfile.GNU_FORMAT),
    "a sparse file by pax": tar(pax("x", **{"GNU.sparse.major": "1", "GNU.sparse.name": "x"})),
    "a sparse file by GNU": tar(special("x", b"S")),
    "a name with NUL by pax": tar(pax("x", path="a\0b")),
    "duplicates in a zip": zipped(("a", b"1"), ("./a", b"2")),
    "depth": tar(("a/" * 101 + "x", b"")),
    "pax records without number": tar(pax("x", **{f"k{number}": "v" for number in range(300)})),
    "half a gzip member": tar(("a", b"1" * 5000))[:-400],
    "garbage after gzip": gzip.compress(bytes(512)[:100]) + b"garbage",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_archives(case: str) -> None:
    assert refusal(HOSTILE[case]).reason == "ContextInvalid"


def test_number_of_gzip_members_is_bounded() -> None:
    plain = gzip.decompress(tar(("a", b"1" * 2000)))
    members = b"".join(gzip.compress(plain[at : at + 100]) for at in range(0, len(plain), 100))
    assert dict(read(members)) == {"a": b"1" * 2000}
    assert dict(read(members + bytes(100))) == {"a": b"1" * 2000}
    assert "gzip members" in refusal(gzip.compress(b"") * 20_000).message


def test_implicit_directories_are_counted() -> None:
    error = refusal(tar(*[(f"{number}/{'d/' * 40}x", b"") for number in range(3)]))
    assert (error.reason, "directories" in error.message) == ("ContextTooLarge", True)


def test_many_small_bombs_in_one_zip() -> None:
    limits = SourceLimits(unpacked_bytes=1 << 30, entries=500, ratio=100)
    data = zipped(*[(f"f{number}", bytes(1 << 20)) for number in range(40)])
    assert len(data) * 100 + (1 << 20) < 40 << 20
    assert refusal(data, limits).reason == "ContextTooLarge"


def test_one_bomb_beside_much_that_does_not_compress() -> None:
    noise = random.Random(1).randbytes(100 << 10)
    data = zipped(("noise", noise), ("bomb", bytes(3 << 20)))
    # The whole is within the ratio and the limit; the entry alone is not.
    assert len(noise) + (3 << 20) < min(LIMITS.unpacked_bytes, len(data) * LIMITS.ratio)
    error = refusal(data)
    assert (error.reason, "100 times" in error.message) == ("ContextTooLarge", True)
    assert read(zipped(("noise", noise), ("zeros", bytes(1 << 20)))).bytes == len(noise) + (1 << 20)


def test_nested_archive_is_a_file() -> None:
    inner = zipped(("x", bytes(1 << 20)))
    assert dict(read(tar(("inner.zip", inner)))) == {"inner.zip": inner}
