"""Uploaded archives: tar within gzip, gzip itself, zip."""

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Iterator

from build.errors import BuildRefused
from build.settings import SourceLimits
from build.source.archive import read_archive
from tests.fuzz.target import FuzzTarget

LIMITS = SourceLimits(context_bytes=1 << 20, unpacked_bytes=1 << 20, entries=64, ratio=100)
_NAMES = (
    "main.py",
    "a/b/c.txt",
    "../up",
    "/root",
    "a//b",
    "./x",
    ".git/config",
    "é\u2028\u202e",
    "A.py",
    "a.py",
    "x" * 99,
    "y/" * 60 + "z",
)


def whole(data: bytes) -> None:
    """An archive of any bytes. Accepted content is within all limits, for any headers."""
    try:
        tree = read_archive(io.BytesIO(data), len(data), LIMITS)
    except BuildRefused:
        return
    assert len(tree) <= LIMITS.entries and tree.bytes <= LIMITS.unpacked_bytes
    total = 0
    for path in tree:
        assert not path.startswith("/") and not {"", ".", "..", ".git"} & set(path.split("/")[:1])
        assert ".." not in path.split("/") and "\0" not in path and "\\" not in path
        total += len(tree[path])
    assert total == tree.bytes


def within_gzip(data: bytes) -> None:
    """The same with the compression out of the way, so that the tar's headers are what changes."""
    whole(gzip.compress(data, 1))


def tars() -> Iterator[bytes]:
    """Small tars with everything that a source may not hold, and some that it may."""
    kinds = (
        tarfile.REGTYPE,
        tarfile.DIRTYPE,
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.FIFOTYPE,
    )
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        for kind in kinds:
            buffer = io.BytesIO()
            with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
                for name in _NAMES if kind == tarfile.REGTYPE else ("thing",):
                    info = tarfile.TarInfo(name)
                    info.type, info.linkname = (
                        kind,
                        "main.py" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else "",
                    )
                    info.size = 5 if kind == tarfile.REGTYPE else 0
                    if form == tarfile.PAX_FORMAT:
                        info.pax_headers = {"comment": "x", "size": str(info.size)}
                    tar.addfile(info, io.BytesIO(b"hello"[: info.size]))
            yield buffer.getvalue()[:10240]


def zips() -> Iterator[bytes]:
    """Small zips, among them one with a link, one that is stored, and a bomb."""
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for name in ("main.py", "a/b.txt", "../up"):
                archive.writestr(name, "hello")
            link = zipfile.ZipInfo("link")
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(link, "main.py")
        yield buffer.getvalue()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", b"\0" * (4 << 20))
    yield buffer.getvalue()


def packed() -> Iterator[bytes]:
    """Both, as they come."""
    yield from zips()
    for tar in tars():
        yield gzip.compress(tar, 9, mtime=0)
    yield gzip.compress(b"", mtime=0) * 3


TARGETS = (
    FuzzTarget("tar", ("build",), within_gzip, tars, 10240),
    FuzzTarget("archive", ("build",), whole, packed, 8192),
)
