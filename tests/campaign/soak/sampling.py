"""What is looked at during a soak: memory, open files, threads and tasks of a process, every few seconds.

Called by the soak's test. The process itself reports its tasks, on its page of metrics.
"""

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

from bench.hollow import readings
from tests.campaign.child import Child

MIB = 2**20
LEAST: Mapping[str, float] = {"memory": 2.0, "files": 1.0, "threads": 1.0, "tasks": 1.0}
"""Smallest growth that counts: MiB, of which the notifier's table (`api.store.sql.notifier`) takes one
until 5,000 runs have filled it; one of the others.
"""
_TASKS = re.compile(r"^crewyard_tasks ([0-9.e+]+)$", re.MULTILINE)


@dataclass
class SampleSeries:
    """The samples of one process: by figure, pairs of seconds since the begin and a value."""

    name: str
    values: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def after(self, seconds: float) -> dict[str, list[tuple[float, float]]]:
        """The samples without those of the first `seconds`."""
        return {
            figure: [sample for sample in samples if sample[0] >= seconds]
            for figure, samples in self.values.items()
        }


async def watch(child: Child, series: SampleSeries, begun: float, every: float) -> None:
    """Take a sample every so many seconds until it is cancelled."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
        while True:
            assert child.pid is not None, f"{child.name} ended:\n{child.tail()}"
            async with session.get(f"{child.url}/metrics") as answer:
                match = _TASKS.search(await answer.text())
            assert match, f"{child.name} does not report its tasks"
            now = time.monotonic() - begun
            found = {
                "memory": readings.memory(child.pid).private / MIB,
                "files": readings.open_files(child.pid),
                "threads": readings.threads(child.pid),
                "tasks": float(match[1]),
            }
            for figure, value in found.items():
                series.values.setdefault(figure, []).append((now, value))
            await asyncio.sleep(every)
