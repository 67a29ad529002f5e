"""The outbox against an apiserver that always rejects some Runs: the others are written immediately."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from api.internal import status_outbox
from api.store.index.claims.claims import ClaimGranted, ClaimRequest, ClaimRow
from api.store.store import Store
from kube.client import KubeClient
from tests.testbed.apiserver import serving
from tests.unit.api.store import builders

RUNS = "/apis/crewyard.dev/v1alpha1/namespaces/crews/runs/{name}"


class FailingApiserver:
    """Rejects writes of the Runs in `failures` and counts writes."""

    def __init__(self) -> None:
        self.failures: dict[str, int] = {}
        self.writes: dict[str, int] = {}

    async def patch(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self.writes[name] = self.writes.get(name, 0) + 1
        status = self.failures.get(name)
        if status:
            return web.json_response({"message": "refused"}, status=status)
        return web.json_response({"metadata": {"name": name}})

    async def get(self, request: web.Request) -> web.Response:
        return web.json_response({"metadata": {"uid": "run-uid"}, "status": {"phase": "Pending"}})


@pytest.fixture
def cluster() -> FailingApiserver:
    return FailingApiserver()


@pytest.fixture
async def kube(cluster: FailingApiserver) -> AsyncIterator[KubeClient]:
    routes = [web.patch(RUNS + "/status", cluster.patch), web.get(RUNS, cluster.get)]
    async with serving(routes) as opened:
        yield opened


async def wait_for_unwritten(store: Store, names: set[str]) -> None:
    async with asyncio.timeout(60):
        while {row.run for row in await store.claims.unwritten(100)} != names:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("status", [422, 409, 503])
async def test_failed_claim_writes_do_not_delay_others(
    store: Store, kube: KubeClient, cluster: FailingApiserver, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(status_outbox, "BATCH_SIZE", 2)
    await builders.add_demo_project(store)
    failing = [await builders.claim_run(store) for _ in range(3)]
    cluster.failures = dict.fromkeys(failing, status)
    task = asyncio.create_task(status_outbox.deliver_all(store, kube))
    try:
        async with asyncio.timeout(60):
            while set(cluster.writes) != set(failing):
                await asyncio.sleep(0.02)
        others = [await builders.claim_run(store) for _ in range(5)]
        await wait_for_unwritten(store, set(failing))
        assert [cluster.writes[name] for name in others] == [1] * 5
        assert all(not row.result for row in await store.claims.unwritten(100))
        cluster.failures = {}
        await wait_for_unwritten(store, set())
        assert store.claims.failed_writes == 0
    finally:
        task.cancel()


async def test_invalid_claim_is_given_up_and_counted(
    store: Store, kube: KubeClient, cluster: FailingApiserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.internal.outbox_backoff.MAX_INVALID_WRITES", 2)
    await builders.add_demo_project(store)
    failing = await builders.claim_run(store)
    cluster.failures = {failing: 422}
    task = asyncio.create_task(status_outbox.deliver_all(store, kube))
    try:
        await wait_for_unwritten(store, set())
        assert (store.claims.failed_writes, cluster.writes[failing]) == (1, 2)
    finally:
        task.cancel()


@pytest.mark.parametrize("read_at", ["stored", "written"])
async def test_result_of_a_short_run_is_written_in_one_patch(
    store: Store, kube: KubeClient, cluster: FailingApiserver, monkeypatch: pytest.MonkeyPatch, read_at: str
) -> None:
    """The outbox reads the claim when its result is stored, and goes on then or after the request."""
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    claim_request = ClaimRequest("run-uid", "pod", "nonce")
    assert isinstance(await store.claims.grant(run, claim_request, {}, datetime.now(UTC)), ClaimGranted)
    unwritten, read, proceed = store.claims.unwritten, asyncio.Event(), asyncio.Event()

    async def slow_unwritten(limit: int) -> tuple[ClaimRow, ...]:
        rows = await unwritten(limit)
        if any(row.result for row in rows):
            read.set()
            await proceed.wait()
        return rows

    monkeypatch.setattr(store.claims, "unwritten", slow_unwritten)
    # Long enough for the result to arrive, on a busy machine too.
    monkeypatch.setattr(status_outbox, "COALESCE_WINDOW", timedelta(minutes=5))
    task = asyncio.create_task(status_outbox.deliver_all(store, kube))
    try:
        with status_outbox.reserved(store, run):
            assert await store.claims.record_result(run, "pod", "nonce", {"outcome": "succeeded"}) is False
            store.claims.waiting.set()
            await asyncio.wait_for(read.wait(), 60)
            if read_at == "stored":
                proceed.set()
                await asyncio.sleep(0.1)
            assert await status_outbox.deliver_until(store, kube, run, 60)
        proceed.set()
        await wait_for_unwritten(store, set())
        await asyncio.sleep(0.5)
        assert cluster.writes == {run: 1}
    finally:
        task.cancel()


async def test_claim_of_a_failed_request_is_written(
    store: Store, kube: KubeClient, cluster: FailingApiserver
) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    task = asyncio.create_task(status_outbox.deliver_all(store, kube))
    try:
        with status_outbox.reserved(store, run):
            await asyncio.sleep(0.5)
            assert cluster.writes == {}
        await wait_for_unwritten(store, set())
        assert cluster.writes == {run: 1}
    finally:
        task.cancel()
