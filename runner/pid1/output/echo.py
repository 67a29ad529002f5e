"""Copies the crew's lines to the pod's standard output, for `kubectl logs`. Never blocks."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ECHO_BUFFER_BYTES = 256 * 1024
ECHO_BYTES_PER_SECOND = 4 << 20
"""The kubelet rotates a pod's log every ten seconds, and evicts a pod whose logs exceed its storage limit."""
MAX_ECHO_BURST_BYTES = 16 << 20
LINE_PREFIX_BYTES = 46
"""Time and stream, which the container runtime writes before each line."""


class Echo:
    """Writes without blocking, buffers `max_bytes`, and drops further lines, reporting their number.

    It also drops lines beyond a rate, so that a crew that prints fast keeps its pod.
    """

    def __init__(
        self,
        descriptor: int,
        max_bytes: int = MAX_ECHO_BUFFER_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._descriptor = descriptor
        self._max_bytes = max_bytes
        self._clock = clock
        self._filled_at = clock()
        self._left = float(MAX_ECHO_BURST_BYTES)
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
        if len(self._buffer) > self._max_bytes or not self._take(lines):
            self._dropped += len(lines)
            return
        if self._dropped:
            note = f"[runner] {self._dropped} lines are not repeated here; the run's events have them\n"
            self._buffer += note.encode()
            self._dropped = 0
        self._buffer += b"\n".join(lines) + b"\n"
        self.flush()

    def _take(self, lines: list[bytes]) -> bool:
        """Count the lines against the rate; return False if they exceed it."""
        now = self._clock()
        self._left = min(self._left + (now - self._filled_at) * ECHO_BYTES_PER_SECOND, MAX_ECHO_BURST_BYTES)
        self._filled_at = now
        size = sum(map(len, lines)) + LINE_PREFIX_BYTES * len(lines)
        if size > self._left:
            return False
        self._left -= size
        return True

    def flush(self) -> None:
        """Write as much of the buffer as possible without blocking."""
        try:
            while self._buffer:
                del self._buffer[: os.write(self._descriptor, self._buffer[:65536])]
        except BlockingIOError:
            pass
        except OSError:
            self._max_bytes, self._buffer = 0, bytearray()
