"""Event stream server under test, as a separate process. Started by `bench.api.streams`.

python -m bench.api.stream_server ours|raw RUNS MISSED

`ours` is the API server over a store in a temporary directory; `raw` writes the same messages with asyncio
alone. Prints its port and an API key, then reads commands from standard input: `talk` makes each run send a
message per second, `hush` stops that. A message is the time in nanoseconds since 1970. The last run has
MISSED messages.
"""

import asyncio
import random
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import web
from kubernetes.aio import client as kubernetes

from api.app import make_client_app
from api.auth.api_keys import StoredKey
from api.config import parse
from api.store.index.claims.claims import ClaimRequest
from api.store.logs.event_log import NewEvent
from api.store.store import Store
from api.streaming import sse
from crds import api_keys, objects
from kube.client import KubeClient

SendMessage = Callable[[int], Awaitable[None]]
PLANS = '{"enterprise": {"requests_per_minute": 100000000, "concurrent_runs": 100000}}'


def message() -> dict[str, str]:
    """Return the data of a `log` event."""
    head = {"run_id": "run_a", "timestamp": "2026-11-21T10:00:00Z"}
    return {**head, "message": str(time.time_ns()), "level": "info"}


async def serve_api(runs: int, missed: int, directory: Path) -> tuple[int, str, SendMessage]:
    """Start the API server with that many claimed runs."""
    environment = {"CREWYARD_TOKEN_KEY": "0" * 32, "CREWYARD_DATA": str(directory), "CREWYARD_PLANS": PLANS}
    config = parse({**environment, "CREWYARD_PUBLIC_URL": "http://127.0.0.1"})
    store = await Store.open(directory, config.namespace)
    kube = KubeClient(
        kubernetes.ApiClient(kubernetes.Configuration(host="http://127.0.0.1:9")), config.namespace
    )
    generated = api_keys.generate()
    key = StoredKey(generated.key_id, generated.hash, "bench", frozenset({"read"}), None, "enterprise")
    for number in range(runs + 1):
        metadata = {"name": f"run-{number}", "namespace": config.namespace, "uid": f"uid-{number}"}
        metadata |= {"resourceVersion": "1", "creationTimestamp": "2026-11-21T10:00:00Z"}
        spec = {"project": "crew", "deployment": "dep-a", "input": {}}
        await store.run_writer.observe(
            objects.Run({"metadata": metadata, "spec": spec, "status": {}}), datetime.now(UTC)
        )
        claim = ClaimRequest(f"uid-{number}", "pod", "nonce")
        await store.claims.grant(f"run-{number}", claim, {"deployment_id": "dep_a"}, datetime.now(UTC))

    async def send_message(number: int, count: int = 1) -> None:
        async with store.events.open_writer(f"run-{number}") as log:
            await log.append([NewEvent(log.seq + offset, "log", message()) for offset in range(1, count + 1)])
        store.events.notify_appended(f"run-{number}")

    for _ in range(missed // 500):
        await send_message(runs, 500)
    app = make_client_app(config, store, kube, {key.key_id: key})
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    return site.port, generated.text, send_message


async def serve_raw(runs: int) -> tuple[int, str, SendMessage]:
    """Start a server that loops over a set of writers."""
    readers: list[set[asyncio.StreamWriter]] = [set() for _ in range(runs)]
    last = [0] * runs

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        number = int(head.split(b"/v1/runs/run_", 1)[1].split(b"/", 1)[0])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 2000\n\n")
        readers[number].add(writer)

    async def send_message(number: int) -> None:
        last[number] += 1
        text = sse.frame("log", message(), last[number])
        for writer in readers[number]:
            writer.write(text)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    return server.sockets[0].getsockname()[1], "-", send_message


async def send_every_second(send_message: SendMessage, number: int) -> None:
    """Send a message per second, starting at a random time within the first second."""
    next_send = asyncio.get_running_loop().time() + random.random()
    while True:
        await asyncio.sleep(max(0.0, next_send - asyncio.get_running_loop().time()))
        await send_message(number)
        next_send += 1.0


async def main(kind: str, runs: int, missed: int) -> None:
    """Serve until standard input ends."""
    with tempfile.TemporaryDirectory() as directory:
        port, key, send_message = await (
            serve_api(runs, missed, Path(directory)) if kind == "ours" else serve_raw(runs)
        )
        print(port, key, flush=True)
        senders: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()
        while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            for task in senders:
                task.cancel()
            senders = (
                [asyncio.create_task(send_every_second(send_message, run)) for run in range(runs)]
                if line == "talk"
                else []
            )


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
