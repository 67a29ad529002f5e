"""Store, background tasks and internal API over a namespace of the real cluster."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from api.config import ApiConfig
from api.internal import routes
from api.maintenance import loops
from api.store.store import Store
from crds import pod_tokens
from crds.kinds import DEPLOYMENT, PROJECT, RUN
from crds.objects import Deployment, Project
from crds.times import format_second
from kube.client import KubeClient
from tests.unit.api.conftest import patient_timeouts

__all__ = ["patient_timeouts"]

KEY = "a key that is only used here"
# An hour ago: past the retention of tests that wait for deletion, within that of all others.
ENDED_AT = format_second(datetime.now(UTC) - timedelta(hours=1))
ENDED = {
    "phase": "Succeeded",
    "completionTime": ENDED_AT,
    "durationMs": 1500,
    "conditions": [
        {
            "type": "Succeeded",
            "status": "True",
            "reason": "Succeeded",
            "message": "It ran.",
            "lastTransitionTime": ENDED_AT,
        }
    ],
}


@pytest.fixture
def config(kube: KubeClient, tmp_path: Path) -> ApiConfig:
    return ApiConfig(
        kube.namespace, "http://public", "http://internal", KEY, tmp_path / "data", run_ttl=86400
    )


@pytest.fixture
async def store(config: ApiConfig) -> AsyncIterator[Store]:
    store = await Store.open(config.data, config.namespace)
    yield store
    await store.close()


class StoreTestbed:
    """The project demo with the deployment dep-a; writes what a controller and a pod would write."""

    def __init__(self, config: ApiConfig, kube: KubeClient, store: Store) -> None:
        self.config = config
        self.kube = kube
        self.store = store
        self.project: dict[str, Any] = {}

    async def create_objects(self) -> None:
        """Create both objects and index them."""
        self.project = await self.kube.create(PROJECT, {"metadata": {"name": "demo"}, "spec": {}})
        owner = {
            "apiVersion": PROJECT.api_version,
            "kind": "Project",
            "name": "demo",
            "uid": self.project["metadata"]["uid"],
        }
        await self.kube.create(
            DEPLOYMENT,
            {
                "metadata": {"name": "dep-a", "ownerReferences": [owner]},
                "spec": {"project": "demo", "source": {"archive": {"upload": "upl_a"}}},
            },
        )
        plan = {"framework": "python", "entrypoint": "main:kickoff", "python": "3.11"}
        deployment = await self.kube.patch(
            DEPLOYMENT, "dep-a", {"status": {"phase": "Superseded", "plan": plan}}, "status"
        )
        await self.store.projects.observe(Project(self.project))
        await self.store.deployments.observe(Deployment(deployment))

    async def get(self, run: str) -> dict[str, Any]:
        """Return the Run from the cluster."""
        result = await self.kube.get(RUN, run)
        assert result is not None
        return result

    async def end_run(self, run: str, **status: Any) -> None:
        """Write the terminal status as the controller does."""
        await self.kube.patch(RUN, run, {"status": {**ENDED, **status}}, "status")

    def auth_headers(self, run: str, uid: str, kind: pod_tokens.TokenKind = "run") -> dict[str, str]:
        """Return the Authorization header with a pod's token."""
        text = pod_tokens.mint(KEY, kind, self.kube.namespace, run, uid, int(time.time()) + 600)
        return {"Authorization": f"Bearer {text}"}


@pytest.fixture
async def testbed(config: ApiConfig, kube: KubeClient, store: Store) -> StoreTestbed:
    created = StoreTestbed(config, kube, store)
    await created.create_objects()
    return created


@pytest.fixture
async def work(testbed: StoreTestbed) -> AsyncIterator[Callable[..., Awaitable[None]]]:
    """Start (or restart) the background tasks and wait for their first list."""
    running: list[tuple[Any, web.Application]] = []

    async def stop() -> None:
        while running:
            with pytest.raises(StopAsyncIteration):
                await anext(running.pop()[0])

    async def start(**changed: Any) -> None:
        await stop()
        progress = loops.ProjectionProgress()
        settings = ApiConfig(**{**vars(testbed.config), **changed})
        app = web.Application()
        context = loops.cleanup_context(settings, testbed.store, testbed.kube, progress)(app)
        await anext(context)
        running.append((context, app))
        await until(lambda: _is(progress.ready))

    yield start
    await stop()


@pytest.fixture
async def pods(config: ApiConfig, kube: KubeClient, store: Store) -> AsyncIterator[TestClient[Any, Any]]:
    app = web.Application()
    routes.add_routes(app, config, store, kube)
    async with TestClient(TestServer(app)) as client:
        yield client


async def _is(value: bool) -> bool:
    return value


async def until(check: Callable[[], Awaitable[Any]], seconds: float = 180) -> Any:
    """Return the result of `check` once it is true. Fail after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        result = await check()
        if result:
            return result
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.02)
