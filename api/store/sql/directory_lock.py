"""One process per directory: journals and the order of events have one writer. Called by `Store.open`."""

import fcntl
import os
from pathlib import Path

from api.store.errors import StoreUnavailable


class DirectoryLock:
    """Held from when it is made until `release`, or until the process is gone, however it goes."""

    def __init__(self, directory: Path) -> None:
        """Takes the lock. Raises StoreUnavailable where another process has it, OSError."""
        directory.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise StoreUnavailable(
                f"another process uses the store in {directory}; run one replica, or wait until it has ended"
            ) from error

    def release(self) -> None:
        """Gives the directory free; a second time is nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
