"""G3: a rollback until GET shows it, against a bare `kubectl patch`; meanwhile somebody asks 1,000 times a
second which deployment is active, and is never told of none or two.

A facade and a controller of its own, in a namespace of their own.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.api.api_server import Facade, facade
from bench.api.lists import fresh
from bench.api.requests_client import Connection
from bench.lib.finding import Finding
from bench.lib.installation import Ground
from tests.testbed.ports import free_port

PAIRS = 41
POLLERS = 4
PER_SECOND = 1000


@asynccontextmanager
async def _controller(ours: Facade) -> AsyncIterator[None]:
    settings = {
        **ours.settings,
        "CREWYARD_INTERNAL_URL": ours.url,
        "CREWYARD_SERVICE_IMAGE": "registry.invalid/service@sha256:" + "0" * 64,
        "CREWYARD_KANIKO_IMAGE": "registry.invalid/kaniko",
        "CREWYARD_BASE_IMAGES": json.dumps({"3.11": "registry.invalid/python"}),
        "CREWYARD_REGISTRY": "registry.invalid",
        "CREWYARD_PORT": str(free_port()),
    }
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "controller", env={**os.environ, **settings}, stdout=log, stderr=log
        )
        try:
            yield
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()


def _poll(url: str, key: str, over: Path) -> tuple[Counter[int], float]:
    """How many were active in each answer, and the rate of the answers, until the file is there."""
    connection, seen, begun = Connection(url, key), Counter[int](), time.perf_counter()
    while not over.exists():
        # At a pace of its own: PER_SECOND by all pollers together.
        due = begun + sum(seen.values()) * POLLERS / PER_SECOND
        time.sleep(max(0.0, due - time.perf_counter()))
        connection.send("/v1/deployments?project=shop", fresh())
        found = json.loads(connection.receive())["data"]
        seen[sum(one["status"] == "active" for one in found)] += 1
    connection.close()
    return seen, sum(seen.values()) / (time.perf_counter() - begun)


async def _kubectl(ours: Facade, deployment: str, number: int) -> float:
    patch = json.dumps({"metadata": {"annotations": {"bench": str(number)}}})
    begun = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        "kubectl", "-n", ours.kube.namespace, "patch", "cdep", deployment, "--type=merge", "-p", patch,
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    if await process.wait():
        raise RuntimeError("kubectl patch failed")
    return (time.perf_counter() - begun) * 1000


async def _roll_back(ours: Facade, deployment: str) -> float:
    path = f"/v1/deployments/{deployment.replace('-', '_', 1)}"
    begun = time.perf_counter()
    await ours.call("POST", f"{path}/rollback")
    shown = await ours.call("GET", path)
    took = time.perf_counter() - begun
    if shown["status"] != "active":
        raise RuntimeError(f"not active after the rollback: {shown}")
    return took * 1000


async def _ready(ours: Facade, deployment: str) -> None:
    """Returns once the controller has answered a rollback."""
    async with asyncio.timeout(60):
        while True:
            try:
                await _roll_back(ours, deployment)
                return
            except RuntimeError:
                await asyncio.sleep(0.5)


async def measure(ground: Ground) -> list[Finding]:
    """G3: first alone, then polled."""
    async with facade() as ours:
        deployments = await ours.project("shop", 2)
        async with _controller(ours):
            await _ready(ours, deployments[1])
            pairs = []
            for number in range(PAIRS):
                chosen = deployments[number % 2]
                pairs.append((await _kubectl(ours, chosen, number), await _roll_back(ours, chosen)))
            with tempfile.TemporaryDirectory() as directory:
                over = Path(directory) / "over"
                polls = [
                    asyncio.create_task(asyncio.to_thread(_poll, ours.url, ours.key, over))
                    for _ in range(POLLERS)
                ]
                await asyncio.sleep(0.5)
                polled = [await _roll_back(ours, deployments[(n + 1) % 2]) for n in range(PAIRS)]
                over.touch()
                told = await asyncio.gather(*polls)
    active, rate = sum((seen for seen, _ in told), Counter[int]()), sum(rate for _, rate in told)
    others = {count: times for count, times in active.items() if count != 1}
    fact = f"{sum(active.values())} answers at {rate:.0f} a second, {others or 'none'} with 0 or 2 active"
    return [
        Finding("G3", "rollback → GET shows it active", "ms", pairs, peer="bare kubectl patch"),
        Finding("G3", "the same while polled", "ms", values=polled, fact=fact),
    ]
