"""The crew's standard output or error: bytes from the pipe → lines, up to the next mark. Used by `intake`."""

from __future__ import annotations

import os
from collections import deque

from runner.pid1.output.lines import Lines
from runner.pid1.output.sync_markers import Marks

CHUNK = 65536


class Stream:
    """One pipe. `at` is the mark that the stream has come to and waits at, for `waited` seconds by now; None
    while it does not wait."""

    def __init__(self, descriptor: int, level: str) -> None:
        self.descriptor = descriptor
        self.level = level
        self.at: str | None = None
        self.waited = 0.0
        self.ended = False
        self._lines = Lines()
        self._marks = Marks()
        self._pieces: deque[tuple[bytes, str | None]] = deque()

    def read(self) -> int:
        """Takes in what the pipe has now, at most 64 KiB. How much it was; 0 at the end."""
        data = os.read(self.descriptor, CHUNK)
        if data:
            self._pieces.extend(self._marks.feed(data))
        else:
            self.ended = True
            os.close(self.descriptor)
        return len(data)

    def lines(self) -> list[tuple[bytes, bool]]:
        """The lines up to the next mark, or to the end of what was read."""
        found: list[tuple[bytes, bool]] = []
        while self._pieces and self.at is None:
            data, self.at = self._pieces.popleft()
            self.waited = 0.0
            found += self._lines.feed(data)
        return found

    def rest(self) -> list[tuple[bytes, bool]]:
        """What is left at the end: marks no longer count, and the last line needs no line feed."""
        found: list[tuple[bytes, bool]] = []
        for data, _ in self._pieces:
            found += self._lines.feed(data)
        self._pieces.clear()
        self.at = None
        return found + self._lines.feed(self._marks.end()) + self._lines.end()
