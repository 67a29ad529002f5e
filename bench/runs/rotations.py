"""Number of log rotations of a pod: changes of the log's inode. For `bench.runs.million_lines`."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from bench.lib.background_load import background_task
from dev.settings import from_environment

POLL_SECONDS = 0.2
"""The kubelet itself checks every ten seconds."""


@dataclass
class LogRotations:
    """Rotations of one pod's log so far."""

    count: int = 0
    _inode: int = 0

    def observe(self, inode: int) -> None:
        """Record the current inode of the log."""
        self.count += self._inode not in (0, inode)
        self._inode = inode

    def describe(self) -> str:
        """Return the text for people."""
        return f"{self.count} rotations" if self._inode else "rotations not seen from this machine"


@contextlib.asynccontextmanager
async def count_rotations(namespace: str, pod: str) -> AsyncIterator[LogRotations]:
    """Count rotations during the block; possible only with the embedded node's logs on this machine."""
    counted = LogRotations()
    pods_directory = from_environment(os.environ).logs / "pods"
    async with background_task(_watch(pods_directory, f"{namespace}_{pod}_*/*/0.log", counted)):
        yield counted


async def _watch(pods_directory: Path, pattern: str, counted: LogRotations) -> None:
    log: Path | None = None
    while True:
        log = log or next(pods_directory.glob(pattern), None)
        # Between the rename of the old file and the creation of the new one there is none.
        with contextlib.suppress(FileNotFoundError):
            if log is not None:
                counted.observe(log.stat().st_ino)
        await asyncio.sleep(POLL_SECONDS)
