"""Reading Server-Sent Events (WHATWG HTML, section 9.2), chunk by chunk. Pure; called by both clients."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from crewyard.errors import CrewyardError

MOST = 8 * 1024 * 1024
"""Bytes that one message may have."""
_RETRY = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Message:
    """A message: its type, its data, and the id to come back with."""

    type: str
    data: str
    id: str


class TooLong(CrewyardError):
    """A message is longer than anything the service sends."""


class Reader:
    """Feeds on bytes, gives whole messages; `last_id` and `retry` (seconds) outlive a broken connection."""

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self.retry: float | None = None
        self.restart()

    def restart(self) -> None:
        """Forgets what was half read: a new connection begins."""
        self._buffer, self._looked = bytearray(), 0
        self._type, self._size = "", 0
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """The messages that are whole with these bytes. Raises TooLong."""
        self._buffer += chunk
        while (line := self._line()) is not None:
            found = self._take(line.decode("utf-8", "replace"))
            if found is not None:
                yield found
        if len(self._buffer) + self._size > MOST:
            raise TooLong(f"a message has more than {MOST} bytes")

    def _line(self) -> bytes | None:
        """The next whole line. A CR at the very end waits: an LF may belong to it."""
        ends = [self._buffer.find(mark, self._looked) for mark in (b"\n", b"\r")]
        end = min((found for found in ends if found >= 0), default=-1)
        if end < 0:
            self._looked = len(self._buffer)
            return None
        pair = self._buffer[end : end + 2] == b"\r\n"
        if self._buffer[end] == 0x0D and end + 1 == len(self._buffer):
            self._looked = end
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1 + pair]
        self._looked = 0
        return line

    def _take(self, line: str) -> Message | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
                self._size += len(value)
            case "event":
                self._type = value
            case "id" if "\0" not in value:
                self.last_id = value
            case "retry" if _RETRY.fullmatch(value):
                self.retry = int(value) / 1000
        return None

    def _dispatch(self) -> Message | None:
        kind, data = self._type, self._data
        self._type, self._data, self._size = "", [], 0
        if not data:
            return None
        return Message(kind or "message", "\n".join(data), self.last_id)
