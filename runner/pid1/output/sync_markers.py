"""Synchronization markers in the crew's standard output and error. Pure; used by `stream`.

Three pipes have no common order. So the child writes a marker into both streams before it writes an event to
the channel, and the event names the marker: output before the marker precedes the event. A marker is
`\\0\\x1ecrewyard:<name>\\x1e\\0`, written in one call, so a pipe keeps it whole.
"""

from __future__ import annotations

_MARKER_PATTERN = rb"\0\x1ecrewyard:([0-9.]{1,40})\x1e\0"
_MARKER_PREFIX = b"\0\x1ecrewyard:"
_MAX_MARKER_BYTES = len(_MARKER_PREFIX) + 42


class MarkerSplitter:
    """Splits a stream at its markers. Buffers at most the bytes of a possible start of a marker."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> list[tuple[bytes, str | None]]:
        """Return the pieces of the stream without markers, each with the marker that follows it."""
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        if b"\0" not in data:
            return [(data, None)]
        import re  # on the first marker: most runs have none

        pieces: list[tuple[bytes, str | None]] = []
        at = 0
        for match in re.finditer(_MARKER_PATTERN, data):
            pieces.append((data[at : match.start()], match[1].decode()))
            at = match.end()
        keep = _unfinished(data, at)
        self._buffer = data[keep:]
        if keep > at:
            pieces.append((data[at:keep], None))
        return pieces

    def end(self) -> bytes:
        """Return the buffered bytes at the end of the stream, which are not a marker."""
        buffered, self._buffer = self._buffer, b""
        return buffered


def _unfinished(data: bytes, start: int) -> int:
    """Return the index of an incomplete marker at the end of `data`; its length if there is none."""
    import re

    at = data.find(b"\0", max(start, len(data) - _MAX_MARKER_BYTES + 1))
    while at >= 0:
        tail = data[at:]
        if _MARKER_PREFIX.startswith(tail[: len(_MARKER_PREFIX)]) and (
            len(tail) < len(_MARKER_PREFIX)
            or re.fullmatch(rb"[0-9.]{0,40}\x1e?", tail[len(_MARKER_PREFIX) :])
        ):
            return at
        at = data.find(b"\0", at + 1)
    return len(data)
