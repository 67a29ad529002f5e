"""Tests of streams at one replica with events from the others: once, in order, to the end."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from api.store.index.claims.claims import ClaimRequest
from api.store.store import Store
from api.streaming import connection
from api.streaming.fanout import RunFeeds
from api.v1.runs import events_routes
from tests.unit.api.store import builders
from tests.unit.api.store.postgres_server import PostgresServer
from tests.unit.api.store.test_replicas import append_events
from tests.unit.api.v1.test_events import messages


def reader(store: Store) -> TestClient[Any, Any]:
    """Return a server of this replica that only follows a run."""
    services = SimpleNamespace(store=store, feeds=RunFeeds(store.events))

    async def follow(request: web.Request) -> web.StreamResponse:
        stream = connection.EventStream(request)
        await stream.open()
        call = cast(Any, SimpleNamespace(services=services))
        await events_routes._send(call, request.match_info["run"], int(request.query["after"]), stream)
        return stream.response

    app = web.Application()
    app.router.add_get("/{run}", follow)
    return TestClient(TestServer(app))


async def test_streams_are_equal_at_all_replicas(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.database()
    stores = await asyncio.gather(*(Store.open(tmp_path, "crews", url) for _ in range(2)))
    one, two = stores
    await builders.add_demo_project(one)
    run = await builders.create_run(one)

    async def follow(client: TestClient[Any, Any], after: int) -> list[dict[str, Any]]:
        async with client.get(f"/{run}?after={after}") as answer:
            return messages(await answer.read())

    async with reader(one) as here, reader(two) as there, asyncio.timeout(120):
        whole = [asyncio.create_task(follow(client, 0)) for client in (here, there, there)]
        await asyncio.sleep(0.05)
        await two.claims.grant(run, ClaimRequest("run-uid", "pod", "nonce"), {}, builders.NOW)
        two.events.notify_state_changed(run)
        later = []
        for number in range(1, 21):
            await append_events(stores[number % 2], run, number)
            later.append((number, asyncio.create_task(follow(there, number))))
        await one.run_writer.observe(builders.run(run, "Succeeded"), builders.NOW)
        bodies = [await task for task in whole]
        assert [message["id"] for message in bodies[0]] == [str(n) for n in range(1, 23)]
        assert bodies[1] == bodies[0] and bodies[2] == bodies[0]
        for after, task in later:
            assert await task == bodies[0][after:]
    for store in stores:
        await store.close()
