"""Repeats the crew's lines on the pod's own standard output, for `kubectl logs`. Never waits for a reader."""

from __future__ import annotations

import os

HOLDS = 256 * 1024


class Echo:
    """Writes what the descriptor takes at once, keeps a little, and drops lines beyond, saying how many."""

    def __init__(self, descriptor: int, holds: int = HOLDS) -> None:
        self._descriptor = descriptor
        self._holds = holds
        self._waiting = bytearray()
        self._dropped = 0
        try:
            os.set_blocking(descriptor, False)
        except OSError:
            self._holds = 0

    def write(self, lines: list[bytes]) -> None:
        """Takes lines without their line feeds."""
        if self._holds == 0:
            return
        if len(self._waiting) > self._holds:
            self.flush()
        if len(self._waiting) > self._holds:
            self._dropped += len(lines)
            return
        if self._dropped:
            note = f"[runner] {self._dropped} lines are not repeated here; the run's events have them\n"
            self._waiting += note.encode()
            self._dropped = 0
        self._waiting += b"\n".join(lines) + b"\n"
        self.flush()

    def flush(self) -> None:
        """Writes what can be written without waiting."""
        try:
            while self._waiting:
                del self._waiting[: os.write(self._descriptor, self._waiting[:65536])]
        except BlockingIOError:
            pass
        except OSError:
            self._holds, self._waiting = 0, bytearray()
