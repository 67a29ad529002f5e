"""Chunked reader of a file, in threads. Called by `api.store.blobs.blobs` for blobs in a directory.

The object-store library reads files too, but 8 KiB at a time with a thread switch for each: ten times slower.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")
READER_THREADS = 8
"""Threads that read. A hanging disk blocks only these."""
_pool = ThreadPoolExecutor(READER_THREADS, "file-chunks")


async def chunks(
    path: Path, start: int, end: int | None, size: int, seconds: float
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes from `start` up to, not including, `end` or the end of file, at most `size` per chunk.

    Keeps reading the file it opened, even if its name is deleted or replaced. Raises OSError (including
    FileNotFoundError), and TimeoutError if one chunk takes longer than `seconds`.
    """
    last: Future[Any] = _pool.submit(_open, path)
    file: FileIO = await _wait(seconds, last)

    async def run(function: Callable[..., Result], argument: int) -> Result:
        nonlocal last
        last = future = _pool.submit(function, argument)
        return await _wait(seconds, future)

    try:
        if start:
            await run(file.seek, start)
        remaining = None if end is None else end - start
        while remaining is None or remaining > 0:
            piece = await run(file.read, size if remaining is None else min(size, remaining))
            if not piece:
                return
            if remaining is not None:
                remaining -= len(piece)
            yield piece
    finally:
        # Closed without waiting, after the last read: that one may hang.
        last.add_done_callback(lambda _: _pool.submit(file.close))


def _open(path: Path) -> FileIO:
    return path.open("rb", 0)


async def _wait(seconds: float, future: Future[Result]) -> Result:
    async with asyncio.timeout(seconds):
        return await asyncio.wrap_future(future)
