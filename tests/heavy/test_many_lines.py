"""A crew that prints as much as a run keeps, and more."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.runner.conftest import wait_until

pytestmark = pytest.mark.nightly

LINES = 1_000_000


def _peak(pid: int) -> int:
    """MiB that the process held at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024  # type: ignore[index]


async def test_million_lines_arrive_once_in_order(pod: Any, api: Any) -> None:
    """Slow: prints and sends a million lines."""
    over, api.timeout = 5_000, 600
    pod.crew(
        f"""
        import time
        from crewyard_runtime import emit
        def kickoff():
            start = time.monotonic()
            for number in range({LINES + over}):
                print(number)
                if number % 100_000 == 0:
                    emit("step", number=number)
            emit("step", number=-1)
            for line in open(f"/proc/{{__import__('os').getppid()}}/status"):
                if line.startswith("VmHWM"):
                    peak = int(line.split()[1]) // 1024
            return [time.monotonic() - start, peak]
        """
    )
    await pod.start()
    start = time.monotonic()
    ended = await pod.wait(600)
    assert (ended.code, api.result["outcome"]) == (0, "succeeded")
    logs = api.logs()
    assert logs[:LINES] == [str(number) for number in range(LINES)]
    [dropped] = logs[LINES:]
    assert dropped.startswith(f"{over} log lines were dropped")
    steps = [event["data"]["number"] for event in api.events if event["type"] == "step"]
    assert steps == [*range(0, LINES + over, 100_000), -1]
    seconds, peak = api.result["output"]
    print(f"{LINES / seconds:.0f} lines/s, {time.monotonic() - start:.1f} s in all, process 1: {peak} MiB")
    assert peak < 100


async def test_api_outage_longer_than_the_runner_buffer(pod: Any, api: Any) -> None:
    """Slow: prints more than the runner's buffer holds."""
    count = 150_000  # 8 MiB hold some 80,000 such lines: then print waits
    pod.crew(
        f"""
        def kickoff():
            open("artifacts/early.txt", "w").write("early")
            for number in range({count}):
                print("line number", number)
            return "done"
        """
    )
    await pod.start()
    await wait_until(lambda: len(api.logs()) > 5)
    await api.stop()
    await asyncio.sleep(8)
    assert _peak(pod.process.pid) < 100
    await api.start()
    assert (await pod.wait(240)).code == 0
    assert api.logs() == [f"line number {number}" for number in range(count)]
    assert (api.result["output"], list(api.artifacts)) == ("done", ["early.txt"])
