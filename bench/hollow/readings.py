"""Kernel statistics of a live process: CPU time, memory, open files, threads.

Called by the measurements on hollow nodes and by the soak.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_KIB = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class ProcessMemory:
    """Bytes: all resident memory, and the part that no other process shares."""

    resident: int
    private: int


def cpu_seconds(pid: int) -> float:
    """Return the CPU time since the process started, including children that have exited."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


def memory(pid: int) -> ProcessMemory:
    """Return its current memory."""
    return parse(Path(f"/proc/{pid}/smaps_rollup").read_text())


def parse(rollup: str) -> ProcessMemory:
    """Return the sums of a `smaps_rollup`. Pure."""
    sums = {name: int(amount) * 1024 for name, amount in _KIB.findall(rollup)}
    return ProcessMemory(sums["Rss"], sums["Private_Clean"] + sums["Private_Dirty"])


def open_files(pid: int) -> int:
    """Return the number of open descriptors."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def threads(pid: int) -> int:
    """Return the number of threads."""
    return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
