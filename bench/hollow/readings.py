"""What the kernel tells of a process: processor time, memory, open files, threads.

Called by the measurements on hollow nodes and by the soak; `pid` is a process that lives.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_KIB = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class ProcessMemory:
    """Bytes: all that is in memory, and the part of it that no other process shares."""

    resident: int
    private: int


def cpu_seconds(pid: int) -> float:
    """Processor time since the process began, with that of children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


def memory(pid: int) -> ProcessMemory:
    """Its memory now."""
    return parse(Path(f"/proc/{pid}/smaps_rollup").read_text())


def parse(rollup: str) -> ProcessMemory:
    """The sums of a `smaps_rollup`. Pure."""
    sums = {name: int(amount) * 1024 for name, amount in _KIB.findall(rollup)}
    return ProcessMemory(sums["Rss"], sums["Private_Clean"] + sums["Private_Dirty"])


def open_files(pid: int) -> int:
    """How many descriptors are open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def threads(pid: int) -> int:
    """How many threads it has."""
    return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
