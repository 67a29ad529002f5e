"""An archive on its way, with a line every few seconds. Called by the deploy program."""

import time
from collections.abc import Callable
from typing import IO

_EVERY_SECONDS = 3.0
_MIB = 1024 * 1024


def amount(size: int) -> str:
    """Bytes for people."""
    return f"{size / _MIB:.1f} MiB" if size >= _MIB else f"{size / 1024:.1f} KiB"


class Progress:
    """Reads `file` from its beginning and says how far it is."""

    def __init__(
        self,
        file: IO[bytes],
        size: int,
        say: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        file.seek(0)
        self._file, self._size, self._say, self._now = file, size, say, now
        self._sent, self._started = 0, now()
        self._spoken = self._started

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes."""
        data = self._file.read(size)
        self._sent += len(data)
        now = self._now()
        if now - self._spoken >= _EVERY_SECONDS and data:
            self._spoken = now
            speed = amount(int(self._sent / (now - self._started)))
            self._say(f"sent {amount(self._sent)} of {amount(self._size)}, {speed}/s")
        return data
