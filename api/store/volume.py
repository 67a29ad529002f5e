"""Free space of the volume with index, logs and blobs. Called by the calls that store bytes.

Below the floor only ends of runs, claims and rows are written: these are small, and without them nothing that
runs could be finished.
"""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from api.store.errors import StoreUnavailable
from api.store.index.uploads import UNBOUNDED
from crds.installation_limits import InstallationLimits
from crds.limits import PlanLimits, Plans

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

    def project_bytes_limit(self, plan: PlanLimits, limits: InstallationLimits) -> int | None:
        """Return the bytes that a project of the plan may store; None without a limit."""
        return plan.stored_bytes or self.share(limits.project_bytes)

    def limits_projects(self, plans: Plans, limits: InstallationLimits) -> bool:
        """Return whether a project of any plan has a limit of stored bytes."""
        return any(self.project_bytes_limit(plan, limits) is not None for plan in plans.by_name.values())

    def uploads_bytes_limit(self, limits: InstallationLimits) -> int:
        """Return the bytes that the uploads of all projects may have."""
        return self.share(limits.uploads_bytes) or UNBOUNDED

    def share(self, limit: int) -> int | None:
        """Return a limit of bytes; without one half of the volume, None without a volume."""
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
