"""S3: thousands of parallel event streams in one process; S4: catching up after 10,000 missed events.

Server and clients are separate processes on loopback, to measure only the server. The installation is not
used.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation
from bench.lib.statistics import percentile

STREAM_COUNT = 5000
RUN_COUNT = 50
IDLE_STREAM_COUNT = 10_000
MEASURED_SECONDS = 10.0
MISSED_EVENTS = 10_000
CATCH_UP_COUNT = 12
READER_PROCESSES = 2
"""Number of client processes."""


@dataclass(frozen=True)
class StreamServerProcess:
    """A server under measurement."""

    process: asyncio.subprocess.Process
    port: int
    key: str

    def resident(self) -> int:
        """Return its resident memory in bytes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmRSS")).split()[1])

    def tell(self, word: str) -> None:
        """Send it a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n".encode())


async def _start(module: str, *arguments: object) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *map(str, arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 27,
    )


async def _read_line(process: asyncio.subprocess.Process) -> list[str]:
    assert process.stdout is not None
    words = (await asyncio.wait_for(process.stdout.readline(), 120)).decode().split(maxsplit=1)
    if not words:
        raise RuntimeError("a process of the measurement exited early")
    return [word.strip() for word in words]


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


@asynccontextmanager
async def stream_server(kind: str, missed: int = 0) -> AsyncIterator[StreamServerProcess]:
    """Run a server of this kind during the block."""
    process = await _start("bench.api.stream_server", kind, RUN_COUNT, missed)
    try:
        while len(words := await _read_line(process)) != 2 or not words[0].isdigit():
            pass  # its log
        yield StreamServerProcess(process, int(words[0]), words[1])
    finally:
        await _end(process)


async def broadcast(kind: str, streams: int, seconds: float) -> tuple[list[float], float, int]:
    """Return the message latencies in ms, KiB of memory per idle stream, and the number of lost streams."""
    async with stream_server(kind) as server:
        before = server.resident()
        streams_per_reader = streams // READER_PROCESSES
        readers = [
            await _start("bench.api.stream_clients", server.port, server.key, streams_per_reader, RUN_COUNT)
            for _ in range(READER_PROCESSES)
        ]
        try:
            for reader in readers:
                await _read_line(reader)
            memory = (server.resident() - before) / streams / 1024
            server.tell("talk")
            await asyncio.sleep(2)
            for word, pause in (("count", seconds), ("tell", 0.0)):
                for reader in readers:
                    assert reader.stdin is not None
                    reader.stdin.write(f"{word}\n".encode())
                await asyncio.sleep(pause)
            ages: list[float] = []
            lost = 0
            for reader in readers:
                report = json.loads(" ".join(await _read_line(reader)))
                ages += [age / 1e6 for age in report["ages"]]
                lost += report["lost"]
            return ages, memory, lost
        finally:
            for reader in readers:
                await _end(reader)


async def measure(_installation: MeasuredInstallation, streams: int = STREAM_COUNT) -> list[Finding]:
    """Measure S3."""
    findings = []
    for kind in ("raw", "ours"):
        ages, memory, lost = await broadcast(kind, streams, MEASURED_SECONDS)
        summary = (
            f"{len(ages)} messages, median {percentile(ages, 0.5):.1f} ms, "
            f"p99 {percentile(ages, 0.99):.1f} ms, {memory:.1f} KiB per stream, {lost} streams lost"
        )
        findings.append(
            Finding("S3", f"{streams} streams, a message a second each, {kind}", "ms", fact=summary)
        )
    seconds, memory = await connect_idle(IDLE_STREAM_COUNT)
    summary = f"{seconds:.0f} s until all are open, {memory:.1f} KiB each"
    findings.append(Finding("S3", f"{IDLE_STREAM_COUNT} streams connected in turn, idle", "ms", fact=summary))
    return findings


async def connect_idle(streams: int) -> tuple[float, float]:
    """Return the seconds until that many streams are open, and KiB of memory for each."""
    async with stream_server("ours") as server:
        before, started = server.resident(), time.monotonic()
        streams_per_reader = streams // READER_PROCESSES
        readers = [
            await _start("bench.api.stream_clients", server.port, server.key, streams_per_reader, RUN_COUNT)
            for _ in range(READER_PROCESSES)
        ]
        try:
            for reader in readers:
                await _read_line(reader)
            return time.monotonic() - started, (server.resident() - before) / streams / 1024
        finally:
            for reader in readers:
                await _end(reader)


async def catch_up(_installation: MeasuredInstallation) -> list[Finding]:
    """Measure S4."""
    values, exact = [], 0
    async with stream_server("ours", MISSED_EVENTS) as server, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {server.key}", "Last-Event-ID": "1"}
        for _ in range(CATCH_UP_COUNT):
            started, ids = time.monotonic(), []
            async with session.get(
                f"http://127.0.0.1:{server.port}/v1/runs/run_{RUN_COUNT}/events", headers=headers
            ) as answer:
                async for line in answer.content:
                    if line.startswith(b"id: "):
                        ids.append(int(line[4:]))
                        if len(ids) == MISSED_EVENTS:
                            break
            values.append((time.monotonic() - started) * 1000)
            exact += ids == list(range(2, MISSED_EVENTS + 2))
    fact = f"exact {exact} times of {CATCH_UP_COUNT}"
    return [Finding("S4", f"{MISSED_EVENTS} missed events → caught up", "ms", values=values[1:], fact=fact)]
