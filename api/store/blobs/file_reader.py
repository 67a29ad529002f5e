"""The bytes of a file in pieces, read in threads. Called by `api.store.blobs.blobs` for blobs in a directory.

The library for object stores reads files too, 8 KiB at a time with a change of thread for each: at a tenth of
the speed.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

Read = TypeVar("Read")
READERS = 8
"""Threads that read; those of a disk that hangs are all taken, and nothing else waits for them."""
_pool = ThreadPoolExecutor(READERS, "file-chunks")


async def chunks(
    path: Path, start: int, end: int | None, size: int, seconds: float
) -> AsyncGenerator[bytes, None]:
    """From `start` up to, not including, `end` or the file's end, at most `size` bytes a piece.

    The file is that of the beginning, whatever becomes of its name. Raises OSError, FileNotFoundError among
    them, and TimeoutError where one piece takes longer than `seconds`.
    """
    last: Future[Any] = _pool.submit(_opened, path)
    file: FileIO = await _within(seconds, last)

    async def work(what: Callable[..., Read], argument: int) -> Read:
        nonlocal last
        last = asked = _pool.submit(what, argument)
        return await _within(seconds, asked)

    try:
        if start:
            await work(file.seek, start)
        left = None if end is None else end - start
        while left is None or left > 0:
            piece = await work(file.read, size if left is None else min(size, left))
            if not piece:
                return
            if left is not None:
                left -= len(piece)
            yield piece
    finally:
        # Nobody waits for it, and a read that hangs comes first.
        last.add_done_callback(lambda _: _pool.submit(file.close))


def _opened(path: Path) -> FileIO:
    return path.open("rb", 0)


async def _within(seconds: float, asked: Future[Read]) -> Read:
    async with asyncio.timeout(seconds):
        return await asyncio.wrap_future(asked)
