"""Files read in pieces: a disk that hangs is waited for only so long, and by its readers alone."""

import asyncio
import os
from pathlib import Path

import pytest

from api.store.blobs import file_reader


async def whole(path: Path, seconds: float = 0.2) -> bytes:
    return b"".join([piece async for piece in file_reader.chunks(path, 0, None, 1000, seconds)])


async def test_a_disk_that_hangs_is_given_up_in_time_and_read_when_it_is_back(tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    file.write_bytes(b"x" * 2500)
    os.mkfifo(pipe)
    # A pipe that somebody could write to, and does not, hangs at the first byte.
    writer = os.open(pipe, os.O_RDWR)
    loop = asyncio.get_running_loop()
    try:
        begun = loop.time()
        readers = [whole(pipe) for _ in range(file_reader.READERS)]
        told = await asyncio.wait_for(asyncio.gather(*readers, return_exceptions=True), 60)
        assert [type(one) for one in told] == [TimeoutError] * file_reader.READERS
        assert loop.time() - begun >= 0.2
        # All threads that read hang: who comes next has an answer in time as well, and others do not wait.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(whole(file), 5)
        assert await asyncio.wait_for(asyncio.to_thread(file.read_bytes), 60) == b"x" * 2500
    finally:
        os.close(writer)
    async with asyncio.timeout(60):
        assert await whole(file, 30) == b"x" * 2500
        while opened(pipe):
            await asyncio.sleep(0.01)


def opened(path: Path) -> list[str]:
    """The descriptors of this process that are the file's."""
    return [one.name for one in Path("/proc/self/fd").iterdir() if one.resolve() == path]
