"""The greatest memory of pods that run Kaniko, by their cgroups on this machine. For `bench.sources.redeploy`.

The kernel's own peak counts pages of files, which it would give back; so what the processes themselves
have is read besides, twice a second.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.lib.background_load import beside
from crds.kinds import POD
from dev.settings import CGROUP
from kube.client import Kube
from kube.errors import KubeError

ROOT = Path("/sys/fs/cgroup")
EVERY = 0.5
_MIB = 2**20
_CONTAINER = "kaniko"
# v2, v1
_PEAKS = ("memory.peak", "memory.max_usage_in_bytes")
_OWN = ("anon", "total_rss")


@dataclass
class Peak:
    """What was seen so far, in bytes."""

    limit: str = "?"
    whole: int = 0
    own: int = 0

    def told(self) -> str:
        """For people."""
        if not self.whole:
            return "no memory seen from this machine"
        return (
            f"at most {self.whole / _MIB:.0f} MiB with pages of files, {self.own / _MIB:.0f} MiB "
            f"of processes, limit {self.limit}"
        )


def read(group: Path) -> tuple[int, int]:
    """A cgroup's peak and what its processes have now, bytes; zeros where it is gone."""
    whole = own = 0
    for name in _PEAKS:
        with contextlib.suppress(OSError, ValueError):
            whole = int((group / name).read_text())
    with contextlib.suppress(OSError):
        for line in (group / "memory.stat").read_text().splitlines():
            key, _, value = line.partition(" ")
            if key in _OWN:
                own = int(value)
    return whole, own


@contextlib.asynccontextmanager
async def peak(kube: Kube, selector: str) -> AsyncIterator[Peak]:
    """Follows the pods of a selector that have a container of Kaniko, while the block lasts."""
    found = Peak()
    async with beside(_watch(kube, selector, found)):
        yield found


async def _watch(kube: Kube, selector: str, found: Peak) -> None:
    while True:
        pods: list[dict[str, Any]] = []
        with contextlib.suppress(KubeError):
            pods = (await kube.list(POD, selector)).items
        for pod in pods:
            limit = _limit(pod["spec"])
            if limit is None:
                continue
            found.limit = limit
            for tree in (ROOT / "memory", ROOT):
                for group in (tree / CGROUP).rglob(f"pod{pod['metadata']['uid']}"):
                    whole, own = read(group)
                    found.whole, found.own = max(found.whole, whole), max(found.own, own)
        await asyncio.sleep(EVERY)


def _limit(spec: dict[str, Any]) -> str | None:
    """Kaniko's memory limit; None where the pod has no Kaniko."""
    for one in (*spec.get("initContainers", ()), *spec["containers"]):
        if one["name"] == _CONTAINER:
            return str(one["resources"]["limits"]["memory"])
    return None
