"""The marks in the crew's standard output and error, to which its events refer. Pure; used by `stream`.

Three pipes have no common order. So the child writes a mark into both streams before it writes an event to
the channel, and the event names the mark: what stands before it was said before the event. A mark is
`\\0\\x1ecrewyard:<name>\\x1e\\0`, written at once, and stays whole in a pipe.
"""

from __future__ import annotations

_MARK = rb"\0\x1ecrewyard:([0-9.]{1,40})\x1e\0"
_START = b"\0\x1ecrewyard:"
_LONGEST = len(_START) + 42


class Marks:
    """Cuts a stream at its marks. Holds back at most the bytes that may be the start of one."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[tuple[bytes, str | None]]:
        """The pieces of the stream, without marks, each with the mark that follows it."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        if b"\0" not in data:
            return [(data, None)]
        import re  # with the first mark: most runs have none

        pieces: list[tuple[bytes, str | None]] = []
        at = 0
        for found in re.finditer(_MARK, data):
            pieces.append((data[at : found.start()], found[1].decode()))
            at = found.end()
        keep = _unfinished(data, at)
        self._rest = data[keep:]
        if keep > at:
            pieces.append((data[at:keep], None))
        return pieces

    def end(self) -> bytes:
        """What was held back, at the stream's end: it was no mark."""
        rest, self._rest = self._rest, b""
        return rest


def _unfinished(data: bytes, least: int) -> int:
    """Where the start of a mark begins whose rest may still come; the end of `data` if there is none."""
    import re

    at = data.find(b"\0", max(least, len(data) - _LONGEST + 1))
    while at >= 0:
        tail = data[at:]
        if _START.startswith(tail[: len(_START)]) and (
            len(tail) < len(_START) or re.fullmatch(rb"[0-9.]{0,40}\x1e?", tail[len(_START) :])
        ):
            return at
        at = data.find(b"\0", at + 1)
    return len(data)
