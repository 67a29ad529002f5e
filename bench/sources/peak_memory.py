"""Peak memory of containers that install dependencies, from their cgroups on this machine.

For `bench.sources.redeploy`.

The kernel's own peak includes reclaimable file pages, so the memory of the processes is also read, twice a
second.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.lib.background_load import background_task
from crds.kinds import POD
from dev.settings import CGROUP
from kube.client import KubeClient
from kube.errors import KubeError

ROOT = Path("/sys/fs/cgroup")
POLL_SECONDS = 0.5
_MIB = 2**20
_CONTAINERS = ("kaniko", "install")
# v2, v1
_PEAK_FILES = ("memory.peak", "memory.max_usage_in_bytes")
_PROCESS_MEMORY_KEYS = ("anon", "total_rss")


@dataclass
class PeakMemory:
    """Peak so far, in bytes."""

    limit: str = "?"
    with_file_pages: int = 0
    processes: int = 0

    def describe(self) -> str:
        """Return the text for people."""
        if not self.with_file_pages:
            return "no memory seen from this machine"
        return (
            f"at most {self.with_file_pages / _MIB:.0f} MiB with pages of files, "
            f"{self.processes / _MIB:.0f} MiB of processes, limit {self.limit}"
        )


def read(group: Path) -> tuple[int, int]:
    """Return a cgroup's peak and the current memory of its processes in bytes; zeros if it does not exist."""
    peak_bytes = process_bytes = 0
    for name in _PEAK_FILES:
        with contextlib.suppress(OSError, ValueError):
            peak_bytes = int((group / name).read_text())
    with contextlib.suppress(OSError):
        for line in (group / "memory.stat").read_text().splitlines():
            key, _, value = line.partition(" ")
            if key in _PROCESS_MEMORY_KEYS:
                process_bytes = int(value)
    return peak_bytes, process_bytes


@contextlib.asynccontextmanager
async def watch_peak(kube: KubeClient, selector: str) -> AsyncIterator[PeakMemory]:
    """Watch the pods of a selector that install dependencies during the block."""
    peak = PeakMemory()
    async with background_task(_watch(kube, selector, peak)):
        yield peak


async def _watch(kube: KubeClient, selector: str, peak: PeakMemory) -> None:
    while True:
        pods: list[dict[str, Any]] = []
        with contextlib.suppress(KubeError):
            pods = (await kube.list(POD, selector)).items
        for pod in pods:
            limit = _limit(pod["spec"])
            if limit is None:
                continue
            peak.limit = limit
            for tree in (ROOT / "memory", ROOT):
                for group in (tree / CGROUP).rglob(f"pod{pod['metadata']['uid']}"):
                    peak_bytes, process_bytes = read(group)
                    peak.with_file_pages, peak.processes = (
                        max(peak.with_file_pages, peak_bytes),
                        max(peak.processes, process_bytes),
                    )
        await asyncio.sleep(POLL_SECONDS)


def _limit(spec: dict[str, Any]) -> str | None:
    """Return the memory limit of the container that installs; None if the pod has none."""
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        if container["name"] in _CONTAINERS:
            return str(container["resources"]["limits"]["memory"])
    return None
