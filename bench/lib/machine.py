"""Description of the machine, printed beside every figure."""

import os
import platform
from pathlib import Path


def describe_machine() -> str:
    """Return cores, memory, kernel and load."""
    kib = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    gib = int(kib.split()[1]) / 2**20
    kernel = platform.release().partition("-")[0]
    return f"{os.cpu_count()} cores, {gib:.0f} GiB, Linux {kernel}, load {os.getloadavg()[0]:.1f}"
