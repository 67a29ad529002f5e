"""Upload reader that logs its progress every few seconds. Called by the action `deploy`."""

import time
from collections.abc import Callable
from typing import IO

_LOG_INTERVAL_SECONDS = 3.0
_MIB = 1024 * 1024


def format_size(size: int) -> str:
    """Return a number of bytes as text."""
    return f"{size / _MIB:.1f} MiB" if size >= _MIB else f"{size / 1024:.1f} KiB"


class UploadProgress:
    """Reads `file` from its start and logs the progress."""

    def __init__(
        self,
        file: IO[bytes],
        size: int,
        log: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        file.seek(0)
        self._file, self._size, self._log, self._now = file, size, log, now
        self._sent, self._started = 0, now()
        self._logged_at = self._started

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        data = self._file.read(size)
        self._sent += len(data)
        now = self._now()
        if now - self._logged_at >= _LOG_INTERVAL_SECONDS and data:
            self._logged_at = now
            speed = format_size(int(self._sent / (now - self._started)))
            self._log(f"sent {format_size(self._sent)} of {format_size(self._size)}, {speed}/s")
        return data
