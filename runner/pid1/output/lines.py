"""Splits bytes of a pipe into lines, and decodes lines. Pure; used by `stream` and `capture`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LINE_BYTES = 60_000  # a longer line continues in the next event without loss


class LineSplitter:
    """Splits a byte stream at line feeds; other control characters (CR, NUL, U+2028) are data.

    Buffers at most one unfinished line of `longest` bytes. `cut_at` may move the end of a piece back.
    """

    def __init__(
        self,
        longest: int = MAX_LINE_BYTES,
        cut_at: Callable[[bytes, int, int], int] = lambda line, start, end: end,
    ) -> None:
        self._longest, self._cut_at = max(8, longest), cut_at
        self._unfinished = b""

    def feed(self, data: bytes) -> list[tuple[bytes, bool]]:
        """Return the lines that `data` completes, without line feeds; True: the next piece continues it."""
        parts = (self._unfinished + data).split(b"\n")
        self._unfinished = parts.pop()
        lines: list[tuple[bytes, bool]] = []
        for part in parts:
            if len(part) > self._longest:
                part = self._cut(part, lines)
            lines.append((part, False))
        if len(self._unfinished) > self._longest:
            self._unfinished = self._cut(self._unfinished, lines)
        return lines

    def end(self) -> list[tuple[bytes, bool]]:
        """Return the last line, if the stream ended without a line feed."""
        unfinished, self._unfinished = self._unfinished, b""
        return [(unfinished, False)] if unfinished else []

    def _cut(self, line: bytes, lines: list[tuple[bytes, bool]]) -> bytes:
        start = 0
        while len(line) - start > self._longest:
            end = start + self._longest
            # Do not split a UTF-8 character: step back over at most three continuation bytes.
            back = end
            while back > end - 4 and line[back] & 0xC0 == 0x80:
                back -= 1
            if back > end - 4:
                end = back
            end = self._cut_at(line, start, end)
            lines.append((line[start:end], True))
            start = end
        return line[start:]


def text(line: bytes) -> str:
    """Return the line as text; invalid UTF-8 becomes U+FFFD."""
    return line.decode("utf-8", "replace")
