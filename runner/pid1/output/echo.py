"""Copies the crew's lines to the pod's standard output, for `kubectl logs`. Never blocks."""

from __future__ import annotations

import os

MAX_ECHO_BUFFER_BYTES = 256 * 1024


class Echo:
    """Writes without blocking, buffers `max_bytes`, and drops further lines, reporting their number."""

    def __init__(self, descriptor: int, max_bytes: int = MAX_ECHO_BUFFER_BYTES) -> None:
        self._descriptor = descriptor
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._dropped = 0
        try:
            os.set_blocking(descriptor, False)
        except OSError:
            self._max_bytes = 0

    def write(self, lines: list[bytes]) -> None:
        """Write lines, which have no line feeds."""
        if self._max_bytes == 0:
            return
        if len(self._buffer) > self._max_bytes:
            self.flush()
        if len(self._buffer) > self._max_bytes:
            self._dropped += len(lines)
            return
        if self._dropped:
            note = f"[runner] {self._dropped} lines are not repeated here; the run's events have them\n"
            self._buffer += note.encode()
            self._dropped = 0
        self._buffer += b"\n".join(lines) + b"\n"
        self.flush()

    def flush(self) -> None:
        """Write as much of the buffer as possible without blocking."""
        try:
            while self._buffer:
                del self._buffer[: os.write(self._descriptor, self._buffer[:65536])]
        except BlockingIOError:
            pass
        except OSError:
            self._max_bytes, self._buffer = 0, bytearray()
