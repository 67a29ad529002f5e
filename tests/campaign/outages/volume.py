"""A small file system of a test's own, which can be filled to the last byte. For the tests of outages."""

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

FILLER = "filler"
PIECES = (1 << 20, 65536, 4096, 1)


@contextlib.contextmanager
def volume(place: Path, size: str, owner: str = "root") -> Iterator[Path]:
    """A file system of `size` ("64m") at `place`, `owner`'s, while the block is open. Skips without the
    right to mount one.
    """
    place.mkdir(parents=True, exist_ok=True)
    argv = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "none", str(place)]
    if subprocess.run(argv, capture_output=True).returncode:
        pytest.skip("only root can mount a file system")
    try:
        shutil.chown(place, owner)
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextlib.asynccontextmanager
async def full(place: Path) -> AsyncIterator[None]:
    """No byte is left there while the block is open, also where something is deleted meanwhile."""
    filler = place / FILLER
    filling = asyncio.create_task(_keep_full(filler))
    try:
        yield
    finally:
        filling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await filling
        filler.unlink()


async def _keep_full(filler: Path) -> None:
    with filler.open("wb", buffering=0) as file:
        while True:
            _fill(file)
            await asyncio.sleep(0.2)


def _fill(file: object) -> None:
    for size in PIECES:
        with contextlib.suppress(OSError):
            while True:
                file.write(bytes(size))  # type: ignore[attr-defined]
