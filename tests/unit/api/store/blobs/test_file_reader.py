"""Tests of the file reader: a hanging disk blocks only its readers, within a timeout."""

import asyncio
import os
from pathlib import Path

import pytest

from api.store.blobs import file_reader


async def read_all(path: Path, seconds: float = 0.2) -> bytes:
    return b"".join([piece async for piece in file_reader.chunks(path, 0, None, 1000, seconds)])


async def test_hanging_disk_times_out_and_recovers(tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    file.write_bytes(b"x" * 2500)
    os.mkfifo(pipe)
    # A pipe with an idle writer hangs at the first byte.
    writer = os.open(pipe, os.O_RDWR)
    loop = asyncio.get_running_loop()
    try:
        begun = loop.time()
        readers = [read_all(pipe) for _ in range(file_reader.READER_THREADS)]
        results = await asyncio.wait_for(asyncio.gather(*readers, return_exceptions=True), 60)
        assert [type(result) for result in results] == [TimeoutError] * file_reader.READER_THREADS
        assert loop.time() - begun >= 0.2
        # All reader threads hang: the next read times out too, and other threads do not wait.
        async with asyncio.timeout(60) as hang:
            with pytest.raises(TimeoutError):
                await read_all(file)
        assert not hang.expired()
        assert await asyncio.wait_for(asyncio.to_thread(file.read_bytes), 60) == b"x" * 2500
    finally:
        os.close(writer)
    async with asyncio.timeout(60):
        assert await read_all(file, 30) == b"x" * 2500
        while opened(pipe):
            await asyncio.sleep(0.01)


def opened(path: Path) -> list[str]:
    """Return this process's open descriptors of the file."""
    return [one.name for one in Path("/proc/self/fd").iterdir() if one.resolve() == path]
