"""How often the kubelet rotated a pod's log: how often its file became another one. For `bench.runs.million_lines`."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from bench.lib.background_load import beside
from dev.settings import from_environment

EVERY = 0.2
"""Seconds between two looks; the kubelet itself looks every ten seconds."""


@dataclass
class Rotations:
    """What was seen of one pod's log so far."""

    count: int = 0
    _inode: int = 0

    def saw(self, inode: int) -> None:
        """The log's file is this one now."""
        self.count += self._inode not in (0, inode)
        self._inode = inode

    def told(self) -> str:
        """For people."""
        return f"{self.count} rotations" if self._inode else "rotations not seen from this machine"


@contextlib.asynccontextmanager
async def rotations(namespace: str, pod: str) -> AsyncIterator[Rotations]:
    """Counts them while the block lasts; the embedded node's logs are on this machine, others' are not."""
    found = Rotations()
    place = from_environment(os.environ).logs / "pods"
    async with beside(_watch(place, f"{namespace}_{pod}_*/*/0.log", found)):
        yield found


async def _watch(place: Path, pattern: str, found: Rotations) -> None:
    log: Path | None = None
    while True:
        log = log or next(place.glob(pattern), None)
        # Between the old one's new name and the new one's creation there is none.
        with contextlib.suppress(FileNotFoundError):
            if log is not None:
                found.saw(log.stat().st_ino)
        await asyncio.sleep(EVERY)
