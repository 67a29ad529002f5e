"""Parser of Server-Sent Events (WHATWG HTML, section 9.2), chunk by chunk. Pure; called by both clients."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from crewyard.errors import CrewyardError

MAX_MESSAGE_BYTES = 8 * 1024 * 1024

_RETRY = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class SSEMessage:
    """One message; `id` is the Last-Event-ID to reconnect with."""

    type: str
    data: str
    id: str


class MessageTooLong(CrewyardError):
    """A message exceeds the limit of the client."""


class SSEReader:
    """Incremental parser; `last_id` and `retry` (seconds) survive a broken connection.

    `last_id` is that of the last whole message: one that is cut off comes again.
    """

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self.retry: float | None = None
        self.restart()

    def restart(self) -> None:
        """Discard incomplete input at the start of a new connection."""
        self._buffer, self._searched = bytearray(), 0
        self._id, self._type, self._size = self.last_id, "", 0
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[SSEMessage]:
        """Yield the messages that `chunk` completes. Raises MessageTooLong."""
        self._buffer += chunk
        while (line := self._line()) is not None:
            message = self._parse_line(line.decode("utf-8", "replace"))
            if message is not None:
                yield message
        if len(self._buffer) + self._size > MAX_MESSAGE_BYTES:
            raise MessageTooLong(f"a message has more than {MAX_MESSAGE_BYTES} bytes")

    def _line(self) -> bytes | None:
        """Return the next complete line. A final CR is held back, since an LF may follow."""
        ends = [self._buffer.find(mark, self._searched) for mark in (b"\n", b"\r")]
        end = min((index for index in ends if index >= 0), default=-1)
        if end < 0:
            self._searched = len(self._buffer)
            return None
        pair = self._buffer[end : end + 2] == b"\r\n"
        if self._buffer[end] == 0x0D and end + 1 == len(self._buffer):
            self._searched = end
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1 + pair]
        self._searched = 0
        return line

    def _parse_line(self, line: str) -> SSEMessage | None:
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
                self._id = value
            case "retry" if _RETRY.fullmatch(value):
                self.retry = int(value) / 1000
        return None

    def _dispatch(self) -> SSEMessage | None:
        self.last_id, kind, data = self._id, self._type, self._data
        self._type, self._data, self._size = "", [], 0
        if not data:
            return None
        return SSEMessage(kind or "message", "\n".join(data), self.last_id)
