"""Memory usage from the pod's cgroup (v1 or v2). Used by `work`, which kills the crew before the kernel does.

An OOM kill by the kernel may hit the whole container and lose the crew's last output.
"""

from __future__ import annotations

import os

KILL_SHARE = 0.95
_MAX_ALLOCATION_BYTES_PER_SECOND = 2 << 30  # determines how soon the next check must be


class CgroupMemory:
    """Reads one cgroup directory; values are None or 0 if a file is missing."""

    def __init__(self, directory: str) -> None:
        self._is_v2 = os.path.exists(os.path.join(directory, "memory.max"))
        self._directory = directory if self._is_v2 else os.path.join(directory, "memory")
        self._usage = self._open("memory.current" if self._is_v2 else "memory.usage_in_bytes")
        self.limit = self._number("memory.max" if self._is_v2 else "memory.limit_in_bytes")
        self._kills = self.oom_kills()

    def used(self) -> int:
        """Return the used bytes without reclaimable caches; below the kill share, the raw usage."""
        usage = int(os.pread(self._usage, 32, 0)) if self._usage >= 0 else 0
        if self.limit is None or usage < self.limit * KILL_SHARE:
            return usage
        return usage - reclaimable_bytes(self._text("memory.stat"))

    def oom_kills(self) -> int:
        """Return the number of OOM kills in this cgroup."""
        text = self._text("memory.events" if self._is_v2 else "memory.oom_control")
        return dict(_pairs(text)).get("oom_kill", 0)

    def oom_killed(self) -> bool:
        """Return whether an OOM kill happened since this object was created."""
        return self.oom_kills() > self._kills

    def _open(self, name: str) -> int:
        try:
            return os.open(os.path.join(self._directory, name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return -1

    def _text(self, name: str) -> str:
        try:
            with open(os.path.join(self._directory, name)) as file:
                return file.read()
        except OSError:
            return ""

    def _number(self, name: str) -> int | None:
        text = self._text(name).strip()
        # cgroup v1 reports "no limit" as a number just below 2**63.
        return int(text) if text.isdigit() and int(text) < 1 << 60 else None


def reclaimable_bytes(stat: str) -> int:
    """Return the reclaimable bytes (page cache, slab) of a memory.stat of either version. Pure."""
    figures = dict(_pairs(stat))
    prefix = "total_" if "total_active_file" in figures else ""
    names = (prefix + "active_file", prefix + "inactive_file", "slab_reclaimable")
    return sum(figures.get(name, 0) for name in names)


def exceeds_limit(used: int, limit: int | None) -> bool:
    """Return whether the crew must be killed now. Pure."""
    return limit is not None and used >= limit * KILL_SHARE


def next_check_seconds(used: int, limit: int | None) -> float:
    """Return the seconds in which even a fast crew cannot reach the kill share, 5 to 500 ms. Pure."""
    if limit is None:
        return 0.5
    return min(0.5, max(0.005, (limit * KILL_SHARE - used) / _MAX_ALLOCATION_BYTES_PER_SECOND))


def _pairs(text: str) -> list[tuple[str, int]]:
    parts = [line.split() for line in text.splitlines()]
    return [(part[0], int(part[1])) for part in parts if len(part) == 2 and part[1].isdigit()]
