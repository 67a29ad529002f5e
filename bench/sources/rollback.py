"""G3: rollback until GET shows it, against a bare `kubectl patch`; with and without parallel polling.

While pollers query the active deployment 1,000 times per second, no response may show none or two. API server
and controller are separate processes in a separate namespace.
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

from bench.api.api_server import ApiServer, api_server
from bench.api.lists import unique_accept
from bench.api.requests_client import HttpConnection
from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation
from tests.testbed.ports import free_port

PAIR_COUNT = 41
POLLER_COUNT = 4
POLLS_PER_SECOND = 1000


@asynccontextmanager
async def _controller(server: ApiServer) -> AsyncIterator[None]:
    settings = {
        **server.settings,
        "CREWYARD_INTERNAL_URL": server.url,
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


def _poll(url: str, key: str, stop_file: Path) -> tuple[Counter[int], float]:
    """Return the number of active deployments per response, and the response rate, until the file exists."""
    connection, counts, started = HttpConnection(url, key), Counter[int](), time.perf_counter()
    while not stop_file.exists():
        # POLLS_PER_SECOND is the rate of all pollers together.
        next_poll = started + sum(counts.values()) * POLLER_COUNT / POLLS_PER_SECOND
        time.sleep(max(0.0, next_poll - time.perf_counter()))
        connection.send("/v1/deployments?project=shop", unique_accept())
        deployments = json.loads(connection.receive())["data"]
        counts[sum(deployment["status"] == "active" for deployment in deployments)] += 1
    connection.close()
    return counts, sum(counts.values()) / (time.perf_counter() - started)


async def _patch_milliseconds(server: ApiServer, deployment: str, number: int) -> float:
    patch = json.dumps({"metadata": {"annotations": {"bench": str(number)}}})
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        "kubectl", "-n", server.kube.namespace, "patch", "cdep", deployment, "--type=merge", "-p", patch,
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    if await process.wait():
        raise RuntimeError("kubectl patch failed")
    return (time.perf_counter() - started) * 1000


async def _rollback_milliseconds(server: ApiServer, deployment: str) -> float:
    path = f"/v1/deployments/{deployment.replace('-', '_', 1)}"
    started = time.perf_counter()
    await server.call("POST", f"{path}/rollback")
    deployment_body = await server.call("GET", path)
    seconds = time.perf_counter() - started
    if deployment_body["status"] != "active":
        raise RuntimeError(f"not active after the rollback: {deployment_body}")
    return seconds * 1000


async def _wait_ready(server: ApiServer, deployment: str) -> None:
    """Return when the controller has executed a rollback."""
    async with asyncio.timeout(60):
        while True:
            try:
                await _rollback_milliseconds(server, deployment)
                return
            except RuntimeError:
                await asyncio.sleep(0.5)


async def measure(installation: MeasuredInstallation) -> list[Finding]:
    """Measure G3: first without polling, then with it."""
    async with api_server() as server:
        deployments = await server.project("shop", 2)
        async with _controller(server):
            await _wait_ready(server, deployments[1])
            pairs = []
            for number in range(PAIR_COUNT):
                deployment = deployments[number % 2]
                pairs.append(
                    (
                        await _patch_milliseconds(server, deployment, number),
                        await _rollback_milliseconds(server, deployment),
                    )
                )
            with tempfile.TemporaryDirectory() as directory:
                stop_file = Path(directory) / "over"
                polls = [
                    asyncio.create_task(asyncio.to_thread(_poll, server.url, server.key, stop_file))
                    for _ in range(POLLER_COUNT)
                ]
                await asyncio.sleep(0.5)
                polled_milliseconds = [
                    await _rollback_milliseconds(server, deployments[(n + 1) % 2]) for n in range(PAIR_COUNT)
                ]
                stop_file.touch()
                poll_results = await asyncio.gather(*polls)
    active, rate = (
        sum((counts for counts, _ in poll_results), Counter[int]()),
        sum(rate for _, rate in poll_results),
    )
    unexpected = {count: times for count, times in active.items() if count != 1}
    fact = f"{sum(active.values())} answers at {rate:.0f} a second, {unexpected or 'none'} with 0 or 2 active"
    return [
        Finding("G3", "rollback → GET shows it active", "ms", pairs, peer="bare kubectl patch"),
        Finding("G3", "the same while polled", "ms", values=polled_milliseconds, fact=fact),
    ]
