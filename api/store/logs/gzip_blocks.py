"""How a sealed log is kept: its lines in blocks, each a gzip member of its own. Pure.

Any part of it can be read without the rest, and `zcat` reads the whole. Called by `api.store.logs.event_archive`.
"""

import gzip
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

BLOCK = 256 * 1024
"""Bytes of lines after which a block is full."""


@dataclass(frozen=True)
class Block:
    """Some lines, packed."""

    count: int
    data: bytes


@dataclass(frozen=True)
class Span:
    """A block's place: the number of the line before its first, how many lines, and which bytes."""

    before: int
    count: int
    start: int
    end: int


class Packer:
    """Takes lines, gives blocks. The same lines always give the same blocks."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0

    def take(self, lines: Sequence[bytes]) -> list[Block]:
        """The blocks that these lines fill."""
        full = []
        for line in lines:
            self._lines.append(line)
            self._size += len(line)
            if self._size >= BLOCK:
                full += self.rest()
        return full

    def rest(self) -> list[Block]:
        """What is left, as the last block."""
        if not self._lines:
            return []
        block = Block(len(self._lines), gzip.compress(b"".join(self._lines), 6, mtime=0))
        self._lines, self._size = [], 0
        return [block]


def unpack(data: bytes) -> list[bytes]:
    """The lines of a block. Raises ValueError where it is none."""
    try:
        return zlib.decompress(data, 31).splitlines(keepends=True)
    except zlib.error as error:
        raise ValueError(f"the archive of a log is damaged: {error}") from error


def spans(blocks: Sequence[Sequence[int]], after: int) -> list[Span]:
    """The places of blocks that have lines behind number `after`; `blocks`: how many lines and bytes each."""
    numbers = [0, *accumulate(count for count, _ in blocks)]
    places = [0, *accumulate(size for _, size in blocks)]
    first = bisect_right(numbers, after) - 1
    return [
        Span(numbers[index], blocks[index][0], places[index], places[index + 1])
        for index in range(first, len(blocks))
    ]
