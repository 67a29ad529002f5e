"""The crew's standard output or error, as lines up to the next marker. Used by `capture`."""

from __future__ import annotations

import os
from collections import deque

from runner.pid1.output.lines import LineSplitter
from runner.pid1.output.sync_markers import MarkerSplitter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READ_BYTES = 65536


class OutputStream:
    """One pipe. `waiting_marker` is the marker at which it waits, for `waited_seconds` so far; else None."""

    def __init__(self, descriptor: int, level: str, cut_at: Callable[[bytes, int, int], int]) -> None:
        self.descriptor = descriptor
        self.level = level
        self.waiting_marker: str | None = None
        self.waited_seconds = 0.0
        self.ended = False
        self._lines = LineSplitter(cut_at=cut_at)
        self._markers = MarkerSplitter()
        self._pieces: deque[tuple[bytes, str | None]] = deque()

    def read(self) -> int:
        """Read at most 64 KiB from the pipe; return the number of bytes, 0 at the end."""
        data = os.read(self.descriptor, READ_BYTES)
        if data:
            self._pieces.extend(self._markers.feed(data))
        else:
            self.ended = True
            os.close(self.descriptor)
        return len(data)

    def lines(self) -> list[tuple[bytes, bool]]:
        """Return the lines up to the next marker, or all that were read."""
        lines: list[tuple[bytes, bool]] = []
        while self._pieces and self.waiting_marker is None:
            data, self.waiting_marker = self._pieces.popleft()
            self.waited_seconds = 0.0
            lines += self._lines.feed(data)
        return lines

    def drain(self) -> list[tuple[bytes, bool]]:
        """Return the remaining lines at the end, ignoring markers, with the last line even if unfinished."""
        lines: list[tuple[bytes, bool]] = []
        for data, _ in self._pieces:
            lines += self._lines.feed(data)
        self._pieces.clear()
        self.waiting_marker = None
        return lines + self._lines.feed(self._markers.end()) + self._lines.end()
