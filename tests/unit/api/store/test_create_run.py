"""Tests of run creation while the apiserver's response is lost."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from api.store.errors import StoreUnavailable
from api.store.store import Store
from api.v1.runs import create as run_creation
from api.v1.runs.create import RunRequest, create_run
from crds.objects import Run
from kube import errors
from kube.client import KubeClient
from tests.testbed.apiserver import serving
from tests.unit.api.store import builders

REQUEST = RunRequest("demo", "dep-a", {"n": 1})


class LostResponseApiserver:
    """An apiserver that stores the first object and never responds; `watched` gets the stored object."""

    def __init__(self, store: Store, watched: bool) -> None:
        self.store, self.watched, self.kept = store, watched, 0

    async def create(self, request: web.Request) -> web.Response:
        body = await request.json()
        if not self.kept and self.watched:
            metadata = {**body["metadata"], "uid": "run-1", "resourceVersion": "7"}
            metadata["creationTimestamp"] = "2026-11-21T10:00:00Z"
            await self.store.run_writer.observe(Run({**body, "metadata": metadata}), builders.NOW)
        self.kept += 1
        assert request.transport is not None
        request.transport.close()
        return web.Response()


@pytest.fixture(params=[True, False])
async def breaking(
    store: Store, request: pytest.FixtureRequest
) -> AsyncIterator[tuple[LostResponseApiserver, KubeClient]]:
    server = LostResponseApiserver(store, request.param)
    async with serving(
        [web.post("/apis/crewyard.dev/v1alpha1/namespaces/crews/runs", server.create)]
    ) as kube:
        yield server, kube


async def test_observed_object_accepts_run_without_response(
    store: Store, breaking: tuple[LostResponseApiserver, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_creation, "FIRST_BACKOFF_SECONDS", 0.01)
    server, kube = breaking
    await store.projects.observe(builders.project())
    await store.deployments.observe(builders.deployment())
    if server.watched:
        row = await create_run(store, kube, REQUEST, builders.NOW)
        assert (row.uid, row.status) == ("run-1", "pending")
    else:
        with pytest.raises(errors.KubeUnavailable):
            await create_run(store, kube, REQUEST, builders.NOW)
    assert (await store.runs.page(0, 10)).total == int(server.watched)


async def test_run_is_withdrawn_when_index_fails(
    store: Store, breaking: tuple[LostResponseApiserver, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, kube = breaking
    await store.projects.observe(builders.project())

    insert = store.runs.create

    async def commit_without_answer(*arguments: Any) -> None:
        await insert(*arguments)
        raise StoreUnavailable("the index is busy; try again")

    monkeypatch.setattr(store.runs, "create", commit_without_answer)
    with pytest.raises(StoreUnavailable):
        await create_run(store, kube, REQUEST, builders.NOW)
    async with asyncio.timeout(30):
        while (await store.runs.page(0, 10)).total:
            await asyncio.sleep(0.02)
