"""The pod's memory as its cgroup (version 1 or 2) tells it. Used by `work`, which kills the crew in time.

Where the kernel kills, it may take the whole container, and with it the crew's last words.
"""

from __future__ import annotations

import os

SHARE = 0.95
_FASTEST = 2 << 30  # bytes a second that a process can take: how soon the next look must be


class Memory:
    """Looks at one cgroup directory; all figures None or 0 where there is no such file."""

    def __init__(self, directory: str) -> None:
        self._two = os.path.exists(os.path.join(directory, "memory.max"))
        self._at = directory if self._two else os.path.join(directory, "memory")
        self._usage = self._open("memory.current" if self._two else "memory.usage_in_bytes")
        self.limit = self._number("memory.max" if self._two else "memory.limit_in_bytes")
        self._kills = self.kills()

    def used(self) -> int:
        """Bytes that cannot be had back by dropping caches; at most what is used in all."""
        usage = int(os.pread(self._usage, 32, 0)) if self._usage >= 0 else 0
        if self.limit is None or usage < self.limit * SHARE:
            return usage
        return usage - cache(self._text("memory.stat"))

    def kills(self) -> int:
        """How many processes of this cgroup the kernel has killed for memory."""
        text = self._text("memory.events" if self._two else "memory.oom_control")
        return dict(_pairs(text)).get("oom_kill", 0)

    def killed(self) -> bool:
        """Whether the kernel has killed one since this object was made."""
        return self.kills() > self._kills

    def _open(self, name: str) -> int:
        try:
            return os.open(os.path.join(self._at, name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return -1

    def _text(self, name: str) -> str:
        try:
            with open(os.path.join(self._at, name)) as file:
                return file.read()
        except OSError:
            return ""

    def _number(self, name: str) -> int | None:
        text = self._text(name).strip()
        # Version 1 writes "no limit" as a number just below 2**63.
        return int(text) if text.isdigit() and int(text) < 1 << 60 else None


def cache(stat: str) -> int:
    """Bytes that the kernel keeps of files and their names while nobody needs the room, in a memory.stat of
    either version. Pure."""
    figures = dict(_pairs(stat))
    prefix = "total_" if "total_active_file" in figures else ""
    names = (prefix + "active_file", prefix + "inactive_file", "slab_reclaimable")
    return sum(figures.get(name, 0) for name in names)


def over(used: int, limit: int | None) -> bool:
    """Whether the crew must be killed now. Pure."""
    return limit is not None and used >= limit * SHARE


def next_look(used: int, limit: int | None) -> float:
    """Seconds in which not even a fast crew gets from `used` to the share, within 5 ms and 500 ms. Pure."""
    if limit is None:
        return 0.5
    return min(0.5, max(0.005, (limit * SHARE - used) / _FASTEST))


def _pairs(text: str) -> list[tuple[str, int]]:
    parts = [line.split() for line in text.splitlines()]
    return [(part[0], int(part[1])) for part in parts if len(part) == 2 and part[1].isdigit()]
