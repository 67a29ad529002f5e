"""Lock of the store's directory: journals and event order need a single writer. Called by `Store.open`."""

import fcntl
import os
from pathlib import Path

from api.store.errors import StoreUnavailable


class DirectoryLock:
    """A lock held from construction until `release`, or until the process ends in any way."""

    def __init__(self, directory: Path) -> None:
        """Take the lock. Raises StoreUnavailable if another process holds it, OSError."""
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
        """Release the directory; further calls have no effect."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
