"""What an archive unpacks to does not stay in memory, and a bomb is refused before it is large."""

import gzip
import io
import random
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest

from build.errors import Refused
from build.settings import Limits
from build.source.archive import read_archive

MIB = 1 << 20
LIMITS = Limits(context_bytes=100 * MIB, unpacked_bytes=1 << 30, entries=50_000, ratio=100)
MOST = 96 * MIB
"""A small tree is kept in memory, up to 64 MiB."""


def packed(size: int, noise: int) -> tuple[bytes, bytes]:
    """A tar and a zip of one file of `size` bytes, so much of it noise that its ratio is an ordinary one."""
    content = random.Random(1).randbytes(noise) + bytes(size - noise)
    tar, zipped = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        header = tarfile.TarInfo("a")
        header.size = size
        archive.addfile(header, io.BytesIO(content))
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("a", content)
    return gzip.compress(tar.getvalue(), 1), zipped.getvalue()


def peak(work: Callable[[], object]) -> int:
    """The most bytes that were held at once meanwhile."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", [0, 1], ids=["tar", "zip"])
def test_a_large_source_is_not_held_in_memory(kind):
    data = packed(160 * MIB, 3 * MIB)[kind]
    file = io.BytesIO(data)
    assert peak(lambda: read_archive(file, len(data), LIMITS)) < MOST


@pytest.mark.parametrize("kind", [0, 1], ids=["tar", "zip"])
def test_a_bomb_is_refused_before_it_is_large(kind):
    data = packed(160 * MIB, 0)[kind]
    file = io.BytesIO(data)

    def read() -> None:
        with pytest.raises(Refused):
            read_archive(file, len(data), LIMITS)

    assert peak(read) < MOST
