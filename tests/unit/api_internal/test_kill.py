"""A facade that is killed while a runner talks to it loses nothing it acknowledged and doubles nothing."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import aiohttp

from api.store.store import Store
from tests.unit.api_internal.conftest import KEY, Mint
from tests.unit.api_store import given

SERVER = """
import asyncio, sys
from pathlib import Path
from aiohttp import web
from kubernetes.aio import client
from api.config import Config
from api.internal import routes
from api.store.store import Store
from crds.kube import Kube

async def main():
    place = Path(sys.argv[1])
    store = await Store.open(place, "crews")
    kube = Kube(client.ApiClient(client.Configuration(host="http://127.0.0.1:9")), "crews")
    app = web.Application()
    routes.add(app, Config("crews", "http://public", "http://internal", sys.argv[2], place), store, kube)
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


async def serve(place: Path) -> tuple[asyncio.subprocess.Process, str]:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, str(place), KEY, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    port = int(await asyncio.wait_for(server.stdout.readline(), 30))
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


async def test_events_over_three_kills_are_whole_and_once(tmp_path: Path, bearer: Mint) -> None:
    store = await Store.open(tmp_path / "data", "crews")
    await given.yard(store)
    run = await given.claimed(store)
    await store.close()
    acknowledged = [0]
    for kill in (True, True, True, False):
        server, address = await serve(tmp_path / "data")
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
