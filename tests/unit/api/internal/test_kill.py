"""A facade that is killed while a runner talks to it loses nothing it acknowledged and doubles nothing."""

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
from aiohttp import web
from kubernetes.aio import client
from api.config import ApiConfig
from api.internal import routes
from api.store.store import Store
from kube.client import KubeClient

async def main():
    place = Path(sys.argv[1])
    store = await Store.open(place, "crews")
    kube = KubeClient(client.ApiClient(client.Configuration(host=sys.argv[3])), "crews")
    app = web.Application()
    routes.add_routes(app, ApiConfig("crews", "http://public", "http://internal", sys.argv[2], place), store, kube)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
BATCH = 20
WHOLE = 1200


async def serve(place: Path, apiserver: str) -> tuple[asyncio.subprocess.Process, str]:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, str(place), KEY, apiserver, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    port = int(await asyncio.wait_for(server.stdout.readline(), 240))
    return server, f"http://127.0.0.1:{port}"


async def talk(address: str, run: str, headers: dict[str, str], acknowledged: list[int]) -> None:
    """What a runner does: it sends from the last acknowledged event on, until the connection breaks."""
    async with aiohttp.ClientSession(headers=headers) as session:
        while acknowledged[-1] < WHOLE:
            first = acknowledged[-1] + 1
            events = [
                {"seq": seq, "type": "log", "time": None, "data": {"message": str(seq)}}
                for seq in range(first, min(first + BATCH, WHOLE + 1))
            ]
            body = {"pod_uid": "pod", "nonce": "nonce", "events": events}
            try:
                async with session.post(f"{address}/internal/v1/runs/{run}/events", json=body) as answer:
                    assert answer.status == 200
                    acknowledged.append((await answer.json())["acknowledged"])
            except aiohttp.ClientError:
                return


async def test_events_over_three_kills_are_whole_and_once(
    tmp_path: Path, bearer: Mint, apiserver: str
) -> None:
    store = await Store.open(tmp_path / "data", "crews")
    await builders.yard(store)
    run = await builders.claimed(store)
    await store.close()
    acknowledged = [0]
    for kill in (True, True, True, False):
        server, address = await serve(tmp_path / "data", apiserver)
        talking = asyncio.create_task(talk(address, run, bearer(run), acknowledged))
        if kill:
            await asyncio.sleep(0.12)
            os.kill(server.pid, signal.SIGKILL)
        await asyncio.wait_for(talking, 60)
        if not kill:
            server.terminate()
        await server.wait()
    assert acknowledged[-1] == WHOLE
    store = await Store.open(tmp_path / "data", "crews")
    page = await store.events.read(run, 1, 10 * WHOLE)
    assert [event.id for event in page.events] == list(range(2, WHOLE + 2))
    assert [event.data["message"] for event in page.events] == [str(n) for n in range(1, WHOLE + 1)]
    await store.close()


async def ask(
    session: aiohttp.ClientSession, address: str, body: dict[str, object]
) -> dict[str, object] | None:
    """One call of a pod; None where the connection breaks or the answer is to try again."""
    try:
        async with session.post(address, json=body) as answer:
            return await answer.json() if answer.status == 200 else None
    except aiohttp.ClientError:
        return None


async def test_claims_that_wait_over_kills_never_exceed_the_plan(
    tmp_path: Path, bearer: Mint, apiserver: str
) -> None:
    store = await Store.open(tmp_path / "data", "crews")
    await builders.yard(store)
    runs = [await builders.accepted(store) for _ in range(6)]
    await store.close()
    granted: set[str] = set()
    waited: set[str] = set()

    async def pod(address: str, run: str, killed: asyncio.Event) -> None:
        body = {"protocol": 1, "run_uid": "run-uid", "pod_uid": f"pod-{run}", "nonce": run}
        async with aiohttp.ClientSession(headers=bearer(run)) as session:
            while not killed.is_set():
                if answer := await ask(session, f"{address}/internal/v1/runs/{run}/claim", body):
                    {"granted": granted, "wait": waited}[str(answer["state"])].add(run)
                await asyncio.sleep(0.01)

    for last in (False, False, True):
        server, address = await serve(tmp_path / "data", apiserver)
        killed = asyncio.Event()
        talking = [asyncio.create_task(pod(address, run, killed)) for run in runs]
        await asyncio.sleep(0.3)
        async with asyncio.timeout(60):
            while last and (len(granted) < 2 or not waited >= set(runs) - granted):
                await asyncio.sleep(0.05)
        os.kill(server.pid, signal.SIGKILL)
        killed.set()
        await asyncio.wait_for(asyncio.gather(*talking), 60)
        await server.wait()
        assert len(granted) <= 2
    assert len(granted) == 2
    assert waited >= set(runs) - granted


def kept(place: Path) -> bool:
    """Whether the server has written the result of the only claim."""
    with contextlib.closing(sqlite3.connect(place / INDEX)) as index:
        [(result,)] = index.execute("select result from claims").fetchall()
    return result not in (None, "null")


async def test_a_result_that_was_kept_is_known_after_a_kill_and_no_other_is_taken(
    tmp_path: Path, bearer: Mint, apiserver: str
) -> None:
    store = await Store.open(tmp_path / "data", "crews")
    await builders.yard(store)
    run = await builders.claimed(store)
    await store.close()
    said = {
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
        # There is no apiserver to tell: the answer is kept back until the process dies.
        asking = asyncio.create_task(ask(session, call, said))
        async with asyncio.timeout(60):
            while not kept(tmp_path / "data"):
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        assert not asking.done()
        os.kill(server.pid, signal.SIGKILL)
        assert await asyncio.wait_for(asking, 60) is None
        await server.wait()
    store = await Store.open(tmp_path / "data", "crews")
    (waiting,) = await store.claims.unwritten(10)
    assert waiting.result is not None and waiting.result["output"] == '{"a":1}'
    await store.claims.mark_written(run, result=True)
    await store.close()
    server, address = await serve(tmp_path / "data", apiserver)
    async with aiohttp.ClientSession(headers=bearer(run)) as session:
        call = f"{address}/internal/v1/runs/{run}/result"
        assert await ask(session, call, said) == {}
        assert await ask(session, call, {**said, "outcome": "failed"}) is None
    server.terminate()
    await server.wait()
