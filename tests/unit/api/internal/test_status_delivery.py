"""The outbox against an apiserver that refuses one Run for ever: all others get theirs at once."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from api.store.index.claims.claims import ClaimRequest, ClaimGranted
from api.store.store import Store
from api.v1.runs import status_outbox
from kube.client import KubeClient
from tests.testbed.apiserver import serving
from tests.unit.api.store import builders

RUNS = "/apis/crewyard.dev/v1alpha1/namespaces/crews/runs/{name}"


class Cluster:
    """Refuses what it is told to, and counts."""

    def __init__(self) -> None:
        self.refused: dict[str, int] = {}
        self.tries: dict[str, int] = {}

    async def patch(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self.tries[name] = self.tries.get(name, 0) + 1
        status = self.refused.get(name)
        if status:
            return web.json_response({"message": "refused"}, status=status)
        return web.json_response({"metadata": {"name": name}})

    async def get(self, request: web.Request) -> web.Response:
        return web.json_response({"metadata": {"uid": "run-uid"}, "status": {"phase": "Pending"}})


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def kube(cluster: Cluster) -> AsyncIterator[KubeClient]:
    routes = [web.patch(RUNS + "/status", cluster.patch), web.get(RUNS, cluster.get)]
    async with serving(routes) as opened:
        yield opened


async def left(store: Store, names: set[str]) -> None:
    async with asyncio.timeout(60):
        while {row.run for row in await store.claims.unwritten(100)} != names:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("status", [422, 409, 503])
async def test_one_refused_claim_delays_no_other(
    store: Store, kube: KubeClient, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(status_outbox, "BATCH_SIZE", 2)
    await builders.yard(store)
    bad = [await builders.claimed(store) for _ in range(3)]
    cluster.refused = dict.fromkeys(bad, status)
    work = asyncio.create_task(status_outbox.deliver_all(store, kube))
    try:
        async with asyncio.timeout(60):
            while set(cluster.tries) != set(bad):
                await asyncio.sleep(0.02)
        good = [await builders.claimed(store) for _ in range(5)]
        await left(store, set(bad))
        assert [cluster.tries[name] for name in good] == [1] * 5
        assert all(not row.result for row in await store.claims.unwritten(100))
        cluster.refused = {}
        await left(store, set())
        assert store.claims.failed_writes == 0
    finally:
        work.cancel()


async def test_what_is_invalid_for_good_is_given_up_and_counted(
    store: Store, kube: KubeClient, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.v1.runs.outbox_backoff.MAX_INVALID_WRITES", 2)
    await builders.yard(store)
    bad = await builders.claimed(store)
    cluster.refused = {bad: 422}
    work = asyncio.create_task(status_outbox.deliver_all(store, kube))
    try:
        await left(store, set())
        assert (store.claims.failed_writes, cluster.tries[bad]) == (1, 2)
    finally:
        work.cancel()


async def test_a_brief_run_is_written_once_with_claim_and_result(
    store: Store, kube: KubeClient, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In which its result comes, on a busy machine too.
    monkeypatch.setattr(status_outbox, "COALESCE_WINDOW", timedelta(seconds=2))
    await builders.yard(store)
    work = asyncio.create_task(status_outbox.deliver_all(store, kube))
    try:
        run = await builders.accepted(store)
        asked = ClaimRequest("run-uid", "pod", "nonce")
        assert isinstance(await store.claims.grant(run, asked, {}, datetime.now(UTC)), ClaimGranted)
        assert await store.claims.record_result(run, "pod", "nonce", {"outcome": "succeeded"}) is False
        assert await status_outbox.deliver_until(store, kube, run, 60)
        await left(store, set())
        await asyncio.sleep(status_outbox.COALESCE_WINDOW.total_seconds() + 0.5)
        assert cluster.tries == {run: 1}
    finally:
        work.cancel()
