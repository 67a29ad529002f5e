"""Streams opened at one replica give what runners say at the others: once, in order, to the end."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from api import sse
from api.feeds import Feeds
from api.routes import events
from api.store.index.claims import Asked
from api.store.store import Store
from tests.unit.api.test_events import messages
from tests.unit.api_store import given
from tests.unit.api_store.postgres import Server
from tests.unit.api_store.test_replicas import say


def reader(store: Store) -> TestClient[Any, Any]:
    """A server of this replica that does nothing but follow a run."""
    services = SimpleNamespace(store=store, feeds=Feeds(store.events))

    async def follow(request: web.Request) -> web.StreamResponse:
        stream = sse.Stream(request)
        await stream.open()
        call = cast(Any, SimpleNamespace(services=services))
        await events._send(call, request.match_info["run"], int(request.query["after"]), stream)
        return stream.response

    app = web.Application()
    app.router.add_get("/{run}", follow)
    return TestClient(TestServer(app))


async def test_streams_at_every_replica_are_the_same(tmp_path: Path, postgres: Server) -> None:
    url = postgres.database()
    stores = await asyncio.gather(*(Store.open(tmp_path, "crews", url) for _ in range(2)))
    one, two = stores
    await given.yard(one)
    run = await given.accepted(one)

    async def follow(client: TestClient[Any, Any], after: int) -> list[dict[str, Any]]:
        async with client.get(f"/{run}?after={after}") as answer:
            return messages(await answer.read())

    async with reader(one) as here, reader(two) as there, asyncio.timeout(120):
        whole = [asyncio.create_task(follow(client, 0)) for client in (here, there, there)]
        await asyncio.sleep(0.05)
        await two.claims.ask(run, Asked("run-uid", "pod", "nonce"), {}, given.NOW)
        two.events.turned(run)
        later = []
        for number in range(1, 21):
            await say(stores[number % 2], run, number)
            later.append((number, asyncio.create_task(follow(there, number))))
        await one.record.observe(given.run(run, "Succeeded"), given.NOW)
        found = [await task for task in whole]
        assert [message["id"] for message in found[0]] == [str(n) for n in range(1, 23)]
        assert found[1] == found[0] and found[2] == found[0]
        for after, task in later:
            assert await task == found[0][after:]
    for store in stores:
        await store.close()
