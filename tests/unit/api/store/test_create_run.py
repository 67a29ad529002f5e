"""Accepting a run while the apiserver takes the object and its answer is lost."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from api.store.errors import StoreUnavailable
from api.store.store import Store
from api.v1.runs import create as accept
from api.v1.runs.create import RunRequest, create_run
from crds.objects import Run
from kube import errors
from kube.client import KubeClient
from tests.testbed.apiserver import serving
from tests.unit.api.store import builders as some

REQUEST = RunRequest("demo", "dep-a", {"n": 1})


class Breaking:
    """An apiserver that keeps the first object and answers nobody; `watched` is told what it keeps."""

    def __init__(self, store: Store, watched: bool) -> None:
        self.store, self.watched, self.kept = store, watched, 0

    async def create(self, request: web.Request) -> web.Response:
        body = await request.json()
        if not self.kept and self.watched:
            metadata = {**body["metadata"], "uid": "run-1", "resourceVersion": "7"}
            metadata["creationTimestamp"] = "2026-11-21T10:00:00Z"
            await self.store.run_writer.observe(Run({**body, "metadata": metadata}), some.NOW)
        self.kept += 1
        assert request.transport is not None
        request.transport.close()
        return web.Response()


@pytest.fixture(params=[True, False])
async def breaking(
    store: Store, request: pytest.FixtureRequest
) -> AsyncIterator[tuple[Breaking, KubeClient]]:
    server = Breaking(store, request.param)
    async with serving(
        [web.post("/apis/crewyard.dev/v1alpha1/namespaces/crews/runs", server.create)]
    ) as kube:
        yield server, kube


async def test_a_run_whose_object_was_seen_is_accepted_though_no_answer_came(
    store: Store, breaking: tuple[Breaking, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accept, "FIRST_BACKOFF_SECONDS", 0.01)
    server, kube = breaking
    await store.projects.observe(some.project())
    await store.deployments.observe(some.deployment())
    if server.watched:
        row = await create_run(store, kube, REQUEST, some.NOW)
        assert (row.uid, row.status) == ("run-1", "pending")
    else:
        with pytest.raises(errors.KubeUnavailable):
            await create_run(store, kube, REQUEST, some.NOW)
    assert (await store.runs.page(0, 10)).total == int(server.watched)


async def test_a_run_that_the_index_could_not_finish_accepting_is_taken_back(
    store: Store, breaking: tuple[Breaking, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, kube = breaking
    await store.projects.observe(some.project())

    async def busy(*_: object) -> None:
        await asyncio.sleep(0)
        raise StoreUnavailable("the index is busy; try again")

    monkeypatch.setattr(store.projects, "get", busy)
    with pytest.raises(StoreUnavailable):
        await create_run(store, kube, REQUEST, some.NOW)
    assert (await store.runs.page(0, 10)).total == 0
