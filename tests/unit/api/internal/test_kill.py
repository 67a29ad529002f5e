"""An API server killed during a runner's calls loses no acknowledged data and duplicates none."""

import asyncio
import contextlib
import os
import signal
import sqlite3
import sys
from pathlib import Path

import aiohttp

from api.store.backend import INDEX
from api.store.store import Store
from tests.unit.api.internal.conftest import KEY, Mint
from tests.unit.api.store import builders

SERVER = """
import asyncio, sys
from pathlib import Path
import pytest
from aiohttp import web
from kubernetes.aio import client
from api.config import ApiConfig
from api.internal import routes
from api.store.store import Store
from kube.client import KubeClient
from tests.unit.api.timeouts import raise_timeouts

async def main():
    directory = Path(sys.argv[1])
    store = await Store.open(directory, "crews")
    kube = KubeClient(client.ApiClient(client.Configuration(host=sys.argv[3])), "crews")
    app = web.Application()
    config = ApiConfig("crews", "http://public", "http://internal", sys.argv[2], directory)
    routes.add_routes(app, config, store, kube)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()

raise_timeouts(pytest.MonkeyPatch())
asyncio.run(main())
"""
EVENTS_PER_CALL = 20
EVENT_COUNT = 600
CALLS_BEFORE_KILL = 5


async def serve(directory: Path, apiserver: str) -> tuple[asyncio.subprocess.Process, str]:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, str(directory), KEY, apiserver, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    port = int(await asyncio.wait_for(server.stdout.readline(), 240))
    return server, f"http://127.0.0.1:{port}"


async def send_events(address: str, run: str, headers: dict[str, str], acknowledged: list[int]) -> None:
    """Send events after the last acknowledged one, like a runner, until the connection breaks."""
    async with aiohttp.ClientSession(headers=headers) as session:
        while acknowledged[-1] < EVENT_COUNT:
            first = acknowledged[-1] + 1
            events = [
                {"seq": seq, "type": "log", "time": None, "data": {"message": str(seq)}}
                for seq in range(first, min(first + EVENTS_PER_CALL, EVENT_COUNT + 1))
            ]
            body = {"pod_uid": "pod", "nonce": "nonce", "events": events}
            try:
                async with session.post(f"{address}/internal/v1/runs/{run}/events", json=body) as response:
                    assert response.status == 200
                    acknowledged.append((await response.json())["acknowledged"])
            except aiohttp.ClientError:
                return


async def test_events_survive_server_kills_exactly_once(tmp_path: Path, bearer: Mint, apiserver: str) -> None:
    """Slow: the API server starts four times."""
    store = await Store.open(tmp_path / "data", "crews")
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    await store.close()
    acknowledged = [0]
    for kill in (True, True, True, False):
        server, address = await serve(tmp_path / "data", apiserver)
        senders = asyncio.create_task(send_events(address, run, bearer(run), acknowledged))
        if kill:
            calls = len(acknowledged) + CALLS_BEFORE_KILL
            async with asyncio.timeout(60):
                while len(acknowledged) < calls:
                    await asyncio.sleep(0.001)
            os.kill(server.pid, signal.SIGKILL)
        await asyncio.wait_for(senders, 200)
        if not kill:
            server.terminate()
        await server.wait()
    assert acknowledged[-1] == EVENT_COUNT
    store = await Store.open(tmp_path / "data", "crews")
    page = await store.events.read(run, 1, 10 * EVENT_COUNT)
    assert [event.id for event in page.events] == list(range(2, EVENT_COUNT + 2))
    assert [event.data["message"] for event in page.events] == [str(n) for n in range(1, EVENT_COUNT + 1)]
    await store.close()


async def post_json(
    session: aiohttp.ClientSession, address: str, body: dict[str, object]
) -> dict[str, object] | None:
    """Return the response of one call, or None if the connection breaks or the status is not 200."""
    try:
        async with session.post(address, json=body) as response:
            return await response.json() if response.status == 200 else None
    except aiohttp.ClientError:
        return None


async def test_waiting_claims_never_exceed_plan_over_kills(
    tmp_path: Path, bearer: Mint, apiserver: str
) -> None:
    store = await Store.open(tmp_path / "data", "crews")
    await builders.add_demo_project(store)
    runs = [await builders.create_run(store) for _ in range(6)]
    await store.close()
    granted: set[str] = set()
    waited: set[str] = set()

    async def pod(address: str, run: str, killed: asyncio.Event) -> None:
        body = {"protocol": 1, "run_uid": "run-uid", "pod_uid": f"pod-{run}", "nonce": run}
        async with aiohttp.ClientSession(headers=bearer(run)) as session:
            while not killed.is_set():
                if response := await post_json(session, f"{address}/internal/v1/runs/{run}/claim", body):
                    {"granted": granted, "wait": waited}[str(response["state"])].add(run)
                await asyncio.sleep(0.01)

    for last in (False, False, True):
        server, address = await serve(tmp_path / "data", apiserver)
        killed = asyncio.Event()
        senders = [asyncio.create_task(pod(address, run, killed)) for run in runs]
        await asyncio.sleep(0.3)
        async with asyncio.timeout(60):
            while last and (len(granted) < 2 or not waited >= set(runs) - granted):
                await asyncio.sleep(0.05)
        os.kill(server.pid, signal.SIGKILL)
        killed.set()
        await asyncio.wait_for(asyncio.gather(*senders), 60)
        await server.wait()
        assert len(granted) <= 2
    assert len(granted) == 2
    assert waited >= set(runs) - granted


def is_result_stored(directory: Path) -> bool:
    """Return whether the server has stored the result of the only claim."""
    with contextlib.closing(sqlite3.connect(directory / INDEX)) as index:
        [(result,)] = index.execute("select result from claims").fetchall()
    return result not in (None, "null")


async def test_stored_result_survives_kill_and_is_final(tmp_path: Path, bearer: Mint, apiserver: str) -> None:
    store = await Store.open(tmp_path / "data", "crews")
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    await store.close()
    result = {
        "pod_uid": "pod",
        "nonce": "nonce",
        "outcome": "succeeded",
        "duration_ms": 5,
        "output": {"a": 1},
        "last_event": 0,
        "artifacts": {"count": 0, "bytes": 0},
    }
    server, address = await serve(tmp_path / "data", apiserver)
    async with aiohttp.ClientSession(headers=bearer(run)) as session:
        call = f"{address}/internal/v1/runs/{run}/result"
        # Without an apiserver the response is delayed until the process dies.
        request = asyncio.create_task(post_json(session, call, result))
        async with asyncio.timeout(60):
            while not is_result_stored(tmp_path / "data"):
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        assert not request.done()
        os.kill(server.pid, signal.SIGKILL)
        assert await asyncio.wait_for(request, 60) is None
        await server.wait()
    store = await Store.open(tmp_path / "data", "crews")
    (waiting,) = await store.claims.unwritten(10)
    assert waiting.result is not None and waiting.result["output"] == '{"a":1}'
    await store.claims.mark_written(run, result=True)
    await store.close()
    server, address = await serve(tmp_path / "data", apiserver)
    async with aiohttp.ClientSession(headers=bearer(run)) as session:
        call = f"{address}/internal/v1/runs/{run}/result"
        assert await post_json(session, call, result) == {}
        assert await post_json(session, call, {**result, "outcome": "failed"}) is None
    server.terminate()
    await server.wait()
