"""Bytes from a pipe → lines, and lines → text. Pure; used by `intake`."""

from __future__ import annotations

LONGEST = 60_000  # bytes; a longer line goes on in the next event, so nothing of it is lost


class Lines:
    """Cuts a stream of bytes at line feeds. What else a line holds (CR, NUL, U+2028) is data.

    Holds back at most one unfinished line of `longest` bytes.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = max(8, longest)
        self._rest = b""

    def feed(self, data: bytes) -> list[tuple[bytes, bool]]:
        """The lines that `data` completes, without line feeds; True marks a piece that the next continues."""
        parts = (self._rest + data).split(b"\n")
        self._rest = parts.pop()
        lines: list[tuple[bytes, bool]] = []
        for part in parts:
            if len(part) > self._longest:
                part = self._cut(part, lines)
            lines.append((part, False))
        if len(self._rest) > self._longest:
            self._rest = self._cut(self._rest, lines)
        return lines

    def end(self) -> list[tuple[bytes, bool]]:
        """The last line, if the stream ended without a line feed."""
        rest, self._rest = self._rest, b""
        return [(rest, False)] if rest else []

    def _cut(self, line: bytes, lines: list[tuple[bytes, bool]]) -> bytes:
        start = 0
        while len(line) - start > self._longest:
            end = start + self._longest
            # Not inside a UTF-8 character: step back over at most three continuation bytes.
            back = end
            while back > end - 4 and line[back] & 0xC0 == 0x80:
                back -= 1
            if back > end - 4:
                end = back
            lines.append((line[start:end], True))
            start = end
        return line[start:]


def text(line: bytes) -> str:
    """The line as text; bytes that are not UTF-8 become U+FFFD."""
    return line.decode("utf-8", "replace")
