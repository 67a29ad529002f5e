"""The internal API over a real store, and an apiserver that serves Runs and takes writes only on request."""

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from api.config import ApiConfig
from api.internal import routes
from api.prices import Prices
from api.store.store import Store
from crds import pod_tokens
from crds.installation_limits import InstallationLimits
from crds.limits import Plans
from kube.client import KubeClient
from tests.testbed.apiserver import plain_client

KEY = "a key that is only used here"
EARLIER_KEY = "the key of pods from before"
Pods = TestClient[web.Request, web.Application]
Mint = Callable[..., dict[str, str]]


class UncancelledServer(TestServer):
    """As in production: a handler continues after its client disconnects."""

    async def _make_runner(self, **options: Any) -> web.BaseRunner:
        return await super()._make_runner(**{**options, "handler_cancellation": False})


class FakeObjects:
    """Runs and Deployments of the apiserver; `overrides` change a Run by name."""

    def __init__(self) -> None:
        self.overrides: dict[str, dict[str, Any]] = {}
        self.unavailable = self.deployment_deleted = False
        self.run_reads = 0
        self.accepts_writes = False

    async def run(self, request: web.Request) -> web.Response:
        """Return a Run with its overrides."""
        self.run_reads += 1
        name = request.match_info["name"]
        metadata = {"name": name, "namespace": "crews", "uid": "run-uid", "resourceVersion": "900"}
        metadata["creationTimestamp"] = "2026-11-21T10:00:00Z"
        manifest: dict[str, Any] = {"metadata": metadata, "spec": {"project": "demo", "deployment": "dep-a"}}
        return (
            self._service_unavailable()
            if self.unavailable
            else web.json_response(manifest | self.overrides.get(name, {}))
        )

    async def deployment(self, request: web.Request) -> web.Response:
        """Return a Deployment that is not built yet."""
        if self.deployment_deleted:
            return web.json_response({"reason": "NotFound", "message": "no"}, status=404)
        metadata = {"name": request.match_info["name"], "namespace": "crews", "uid": "run-uid"}
        times = {"resourceVersion": "900", "creationTimestamp": "2026-11-21T10:00:00Z"}
        spec = {"project": "demo", "source": {"archive": {"upload": "upl_1"}}}
        return web.json_response({"metadata": metadata | times, "spec": spec})

    async def write_status(self, request: web.Request) -> web.Response:
        """Accept a write of a Run's status, if the test allows it."""
        if not self.accepts_writes:
            return self._service_unavailable()
        return web.json_response({"metadata": {"name": request.match_info["name"]}})

    async def other(self, _request: web.Request) -> web.Response:
        """Reject any other request."""
        return self._service_unavailable()

    def _service_unavailable(self) -> web.Response:
        return web.json_response({"reason": "ServiceUnavailable", "message": "not now"}, status=503)


@pytest.fixture
def objects() -> FakeObjects:
    return FakeObjects()


@pytest.fixture
async def apiserver(objects: FakeObjects) -> AsyncIterator[str]:
    """Serve the objects and yield the URL."""
    app = web.Application()
    app.router.add_get("/apis/crewyard.dev/v1alpha1/namespaces/crews/runs/{name}", objects.run)
    app.router.add_get("/apis/crewyard.dev/v1alpha1/namespaces/crews/deployments/{name}", objects.deployment)
    app.router.add_patch(
        "/apis/crewyard.dev/v1alpha1/namespaces/crews/runs/{name}/status", objects.write_status
    )
    app.router.add_route("*", "/{rest:.*}", objects.other)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


@pytest.fixture
async def kube(apiserver: str) -> AsyncIterator[KubeClient]:
    opened = plain_client(apiserver)
    yield opened
    await opened.close()


@pytest.fixture
def limits() -> InstallationLimits:
    """Limits of the installation; tests parametrize it."""
    return InstallationLimits()


@pytest.fixture
def plans() -> Plans:
    """Plans of the installation; tests parametrize it."""
    return Plans()


@pytest.fixture
def prices() -> Prices | None:
    """Prices of the installation; tests parametrize it."""
    return None


@pytest.fixture
def reached() -> list[tuple[str, str]]:
    """Return the limits that projects reach, each with its project."""
    return []


@pytest.fixture
async def pods(
    store: Store,
    kube: KubeClient,
    tmp_path: Path,
    limits: InstallationLimits,
    plans: Plans,
    prices: Prices | None,
    reached: list[tuple[str, str]],
) -> AsyncIterator[Pods]:
    config = ApiConfig(
        "crews",
        "http://public",
        "http://internal",
        KEY,
        tmp_path,
        limits=limits,
        plans=plans,
        prices=prices,
        other_token_keys=(EARLIER_KEY,),
    )
    app = web.Application()
    routes.add_routes(
        app, config, store, kube, on_limit=lambda limit, project: reached.append((limit, project))
    )
    async with TestClient(UncancelledServer(app)) as opened:
        yield opened


@pytest.fixture
def bearer() -> Mint:
    """Return a function that makes the Authorization header of a token."""

    def mint(name: str, **other: Any) -> dict[str, str]:
        values = {
            "key": KEY,
            "kind": "run",
            "namespace": "crews",
            "uid": "run-uid",
            "expires": int(time.time()) + 600,
            **other,
        }
        return {"Authorization": "Bearer " + pod_tokens.mint(name=name, **values)}

    return mint
