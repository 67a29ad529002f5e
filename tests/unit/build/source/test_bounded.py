"""Unpacked archives do not stay in memory, and a bomb is refused early."""

import gzip
import io
import random
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest

from build.errors import BuildRefused
from build.settings import SourceLimits
from build.source.archive import read_archive

MIB = 1 << 20
LIMITS = SourceLimits(context_bytes=100 * MIB, unpacked_bytes=1 << 30, entries=50_000, ratio=100)
MAX_PEAK_BYTES = 96 * MIB
"""Trees of up to 64 MiB stay in memory."""


def packed(size: int, noise: int) -> tuple[bytes, bytes]:
    """Return a tar and a zip of one file of `size` bytes; `noise` random bytes keep the ratio ordinary."""
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
    """Return the peak of allocated bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", [0, 1], ids=["tar", "zip"])
def test_large_source_is_not_held_in_memory(kind):
    data = packed(160 * MIB, 3 * MIB)[kind]
    file = io.BytesIO(data)
    assert peak(lambda: read_archive(file, len(data), LIMITS)) < MAX_PEAK_BYTES


@pytest.mark.parametrize("kind", [0, 1], ids=["tar", "zip"])
def test_bomb_is_refused_early(kind):
    data = packed(160 * MIB, 0)[kind]
    file = io.BytesIO(data)

    def read() -> None:
        with pytest.raises(BuildRefused):
            read_archive(file, len(data), LIMITS)

    assert peak(read) < MAX_PEAK_BYTES
