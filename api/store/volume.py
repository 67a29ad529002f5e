"""Free space of the volume with index, logs and blobs. Called by the calls that store bytes.

Below the floor only ends of runs, claims and rows are written: these are small, and without them nothing that
runs could be finished.
"""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from api.store.errors import StoreUnavailable

CHECK_SECONDS = 1.0
DEFAULT_FLOOR_BYTES = 512 << 20
DEFAULT_FLOOR_SHARE = 0.02


class Volume:
    """The file system of `directory`; None where all data is in a database and a bucket."""

    def __init__(
        self,
        directory: Path | None,
        floor_bytes: int = 0,
        clock: Callable[[], float] = time.monotonic,
        free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
    ) -> None:
        self._directory = directory
        self._clock = clock
        self._free_bytes = free_bytes
        self._checked_at = float("-inf")
        self._free = 0
        self.total = 0 if directory is None else shutil.disk_usage(directory).total
        self.floor = floor_bytes or min(DEFAULT_FLOOR_BYTES, int(self.total * DEFAULT_FLOOR_SHARE))

    def share(self, limit: int) -> int | None:
        """Return a limit of bytes; without one half of the volume, None where there is no volume."""
        return limit or (self.total // 2 if self._directory is not None else None)

    def has_room(self) -> bool:
        """Return whether more than the floor is free, as of the last second."""
        if self._directory is None:
            return True
        now = self._clock()
        if now - self._checked_at >= CHECK_SECONDS:
            self._checked_at, self._free = now, self._free_bytes(self._directory)
        return self._free > self.floor

    def check_room(self) -> None:
        """Raise StoreUnavailable below the floor."""
        if not self.has_room():
            raise StoreUnavailable(
                f"less than {self.floor} bytes of the volume are free; until there are more, only ends of "
                "runs are stored"
            )
