"""Format of a sealed log: its lines in blocks, each a separate gzip member. Pure.

Any block can be read without the others, and `zcat` reads the whole file. Called by
`api.store.logs.event_archive`.
"""

import gzip
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

BLOCK_BYTES = 256 * 1024
"""Bytes of lines that fill a block."""


@dataclass(frozen=True)
class LogBlock:
    """A number of compressed lines."""

    count: int
    data: bytes


@dataclass(frozen=True)
class BlockSpan:
    """The position of a block: lines before it, its lines, and its byte range."""

    before: int
    count: int
    start: int
    end: int


class BlockPacker:
    """Packer of lines into blocks. The same lines always produce the same blocks."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0

    def add(self, lines: Sequence[bytes]) -> list[LogBlock]:
        """Add lines; return the blocks that they fill."""
        full = []
        for line in lines:
            self._lines.append(line)
            self._size += len(line)
            if self._size >= BLOCK_BYTES:
                full += self.flush()
        return full

    def flush(self) -> list[LogBlock]:
        """Return the remaining lines as the last block."""
        if not self._lines:
            return []
        block = LogBlock(len(self._lines), gzip.compress(b"".join(self._lines), 6, mtime=0))
        self._lines, self._size = [], 0
        return [block]


def unpack(data: bytes) -> list[bytes]:
    """Return the lines of a block. Raises ValueError if it is damaged."""
    try:
        return zlib.decompress(data, 31).splitlines(keepends=True)
    except zlib.error as error:
        raise ValueError(f"the archive of a log is damaged: {error}") from error


def spans(blocks: Sequence[Sequence[int]], after: int) -> list[BlockSpan]:
    """Return the positions of blocks with lines after number `after`; `blocks`: lines and bytes of each."""
    numbers = [0, *accumulate(count for count, _ in blocks)]
    offsets = [0, *accumulate(size for _, size in blocks)]
    first = bisect_right(numbers, after) - 1
    return [
        BlockSpan(numbers[index], blocks[index][0], offsets[index], offsets[index + 1])
        for index in range(first, len(blocks))
    ]
