"""Tests of revocation: a key revoked at one replica ends its streams at all of them, with one query."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer

from api.app import make_client_app
from api.auth.api_keys import StoredKey
from api.auth.authenticate import caller_of_key
from api.auth.principal import Caller
from api.auth.providers import TokenProviders
from api.auth.revocation import RevocationWatcher
from api.auth.scopes import Grants, Scope
from api.config import parse
from api.store.index.api_keys import KeyRow
from api.store.store import Store
from api.streaming.registry import StreamRegistry
from crds import api_keys
from tests.testbed.apiserver import plain_client
from tests.unit.api.store import builders
from tests.unit.api.store.postgres_server import PostgresServer


@pytest.fixture
async def replicas(tmp_path, postgres: PostgresServer) -> AsyncIterator[list[TestClient]]:
    """Run two API servers over one database, with a run that never ends."""
    admin, made = api_keys.generate(), []
    fixed = {admin.key_id: StoredKey(admin.key_id, admin.hash, "", frozenset({"admin"}), None, "enterprise")}
    config = parse({"CREWYARD_TOKEN_KEY": "0" * 32, "CREWYARD_DATA": str(tmp_path)})
    url = postgres.database("filled")
    async with AsyncExitStack() as stack:
        for number in range(2):
            store = await Store.open(tmp_path / str(number), "crews", url)
            stack.push_async_callback(store.close)
            nowhere = plain_client("http://127.0.0.1:1")
            stack.push_async_callback(nowhere.close)
            app = make_client_app(config, store, nowhere, fixed)
            headers = {"Authorization": f"Bearer {admin.text}"}
            client = TestClient(TestServer(app), headers=headers)
            made.append(await stack.enter_async_context(client))
            if not number:
                await builders.add_demo_project(store)
                await builders.claim_run(store)
        yield made


async def opened(client: TestClient, bearer: str) -> ClientResponse:
    async with client.get("/v1/runs") as answer:
        run = (await answer.json())["data"][0]["id"]
    headers = {"Authorization": f"Bearer {bearer}", "Accept": "text/event-stream"}
    stream = await client.get(f"/v1/runs/{run}/events", headers=headers)
    assert stream.status == 200
    await stream.content.readuntil(b"\n\n")
    return stream


@pytest.mark.parametrize("notified", [True, False], ids=["notified", "notification lost"])
async def test_revocation_at_other_replica_ends_streams(replicas, notified, monkeypatch):
    here, there = replicas
    bearers = []
    for name in ("ends", "goes on"):
        async with here.post("/v1/api-keys", json={"name": name, "scopes": ["read"]}) as answer:
            bearers.append((await answer.json())["data"])
    ends, goes_on = [await opened(there, bearer["key"]) for bearer in bearers]
    if not notified:
        monkeypatch.setattr("api.store.sql.postgres.notifications.NotificationRelay.send", lambda *_: None)
    async with here.delete(f"/v1/api-keys/{bearers[0]['id']}") as answer:
        assert answer.status == 204
    async with asyncio.timeout(60):
        assert (await ends.content.read()).endswith(b": the credential was revoked or has expired\n\n")
    headers = {"Authorization": f"Bearer {bearers[0]['key']}"}
    async with there.get("/v1/runs", headers=headers) as answer:
        assert answer.status == 401
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(goes_on.content.read(), 0.1)


async def test_one_query_for_many_streams(store, monkeypatch):
    streams, asked, now = StreamRegistry(), list[list[str]](), datetime.now(UTC)
    holders = RevocationWatcher(streams, store.keys, TokenProviders(None, None), lambda: now)
    callers = [caller_of_key(StoredKey(f"key-{n}", "", "", frozenset(), None, None)) for n in range(5)]

    async def revoked(ids):
        asked.append(sorted(ids))
        return ["key-3"]

    async def follow(caller):
        streams.register(caller.credential_id, right=("read", "crew"))
        holders.watch(caller, ("read", "crew"))
        try:
            await asyncio.sleep(60)
        finally:
            streams.unregister()

    monkeypatch.setattr(store.keys, "revoked", revoked)
    tasks = [asyncio.create_task(follow(callers[n % 5])) for n in range(1000)]
    await asyncio.sleep(0)
    await holders.check_keys()
    await holders.check_tokens()
    assert asked == [[f"key-{n}" for n in range(5)]]
    await asyncio.sleep(0)
    assert sum(task.done() for task in tasks) == 200
    await holders.check_keys()
    assert asked[1] == ["key-0", "key-1", "key-2", "key-4"], "who has left is not asked about"
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


class ReviewedTokens(TokenProviders):
    """Tokens whose next review returns this caller."""

    def __init__(self) -> None:
        super().__init__(None, None)
        self.current: Caller | None = None

    async def caller(self, text, now, guard):
        """Return the caller as it is now."""
        return self.current


@pytest.mark.parametrize(
    ("grants", "ended"),
    [
        (None, {"read a", "run a", "read b"}),
        (Grants(None, {"a": frozenset({"run"}), "b": frozenset({"read"})}), {"read a"}),
        (Grants(None, {"a": frozenset({"read"}), "c": frozenset({"admin"})}), {"run a", "read b"}),
        (Grants(None, {"a": frozenset({"admin"}), "b": frozenset({"read"})}), set()),
        (Grants(frozenset({"read"})), {"run a"}),
    ],
)
async def test_only_streams_of_lost_rights_end(store, grants, ended):
    streams, tokens, now = StreamRegistry(), ReviewedTokens(), datetime.now(UTC)
    holders, both = RevocationWatcher(streams, store.keys, tokens, lambda: now), frozenset({"read", "run"})
    caller = Caller("ci", Grants(None, {"a": both, "b": both}), None, None, "kubernetes", "ci", "token:1")
    tokens.current = None if grants is None else replace(caller, grants=grants)

    async def follow(right):
        streams.register(caller.credential_id, right=right)
        holders.watch(caller, right)
        try:
            await asyncio.sleep(60)
        finally:
            streams.unregister()

    rights: list[tuple[Scope, str]] = [("read", "a"), ("run", "a"), ("read", "b")]
    tasks = {" ".join(right): asyncio.create_task(follow(right)) for right in rights}
    await asyncio.sleep(0)
    await holders.check_tokens()
    await asyncio.sleep(0)
    assert {name for name, task in tasks.items() if task.done()} == ended
    for task in tasks.values():
        task.cancel()
    await asyncio.wait(tasks.values())


async def test_revoked_among_many_keys(store):
    names = [f"key-{n}" for n in range(1200)]
    assert await store.keys.revoked(names) == []
    for name in names[::400]:
        await store.keys.put(KeyRow(name, "0", "", frozenset({"read"}), None, None, builders.NOW))
    await store.keys.revoke("key-400", builders.NOW)
    assert await store.keys.revoked(names) == ["key-400"]
    assert await store.keys.revoked([]) == []
