"""Processor time and memory of a pod on this machine, from its cgroup."""

import asyncio
from pathlib import Path

from dev.settings import CGROUP

QUIET_SECONDS = 1.0
QUIET_CPU_SECONDS = 0.02
_CGROUPS = Path("/sys/fs/cgroup")
_MIB = 2**20


def cpu_seconds(pod_uid: str) -> float:
    """Return the processor time of a pod on this machine, from its cgroup. Raises OSError."""
    for tree in (_CGROUPS / "cpuacct", _CGROUPS):
        for group in (tree / CGROUP).rglob(f"pod{pod_uid}"):
            if (group / "cpuacct.usage").exists():
                return int((group / "cpuacct.usage").read_text()) / 1e9
            for line in (group / "cpu.stat").read_text().splitlines():
                if line.startswith("usage_usec"):
                    return int(line.split()[1]) / 1e6
    raise FileNotFoundError(f"no cgroup of pod {pod_uid}")


def process_mib(pod_uid: str) -> float:
    """Return the memory of a pod's processes on this machine, without pages of files. Raises OSError."""
    for tree in (_CGROUPS / "memory", _CGROUPS):
        for group in (tree / CGROUP).rglob(f"pod{pod_uid}"):
            for line in (group / "memory.stat").read_text().splitlines():
                key, _, value = line.partition(" ")
                if key in ("anon", "total_rss"):
                    return int(value) / _MIB
    raise FileNotFoundError(f"no cgroup of pod {pod_uid}")


async def wait_quiet(pod_uid: str) -> None:
    """Wait until a pod has used almost no processor time for a second."""
    async with asyncio.timeout(120):
        used = -1.0
        while (current := cpu_seconds(pod_uid)) - used > QUIET_CPU_SECONDS or current < 0.05:
            used = current
            await asyncio.sleep(QUIET_SECONDS)
