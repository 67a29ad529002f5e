"""The complete API server over a real apiserver; tests write the controller's statuses."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from api.app import make_app
from api.auth.api_keys import StoredKey
from api.config import parse
from api.store.store import Store
from crds import api_keys
from crds.kinds import DEPLOYMENT, PROJECT, Kind
from crds.names import id_of
from kube.client import KubeClient
from tests.e2e.unavailable import repeat_unavailable
from tests.unit.api.conftest import patient_timeouts, stopped_windows
from tests.unit.api.described import DESCRIPTION

__all__ = ["patient_timeouts", "stopped_windows"]


class ClusterApiTestbed:
    """The API server under test and the apiserver behind it."""

    def __init__(self, client: TestClient, kube: KubeClient, store: Store, admin: str) -> None:
        self.client, self.kube, self.store, self.admin = client, kube, store, admin

    async def call(self, method: str, path: str, body: Any = None, **kwargs: Any):
        """Return status, JSON body (or bytes) and headers of one call, repeated after a 503."""
        headers = {"Authorization": f"Bearer {self.admin}", **kwargs.pop("headers", {})}

        async def attempt() -> tuple[int, Any, Mapping[str, str]]:
            async with self.client.request(method, path, json=body, headers=headers, **kwargs) as response:
                raw = await response.read()
                DESCRIPTION.check(method, response.url.raw_path, response.status, response.headers, raw)
                is_json = response.content_type == "application/json" and raw
                return response.status, await response.json() if is_json else raw, response.headers

        return await repeat_unavailable(attempt, lambda response: (response[0], response[2]))

    async def data(self, method: str, path: str, body: Any = None, **kwargs: Any) -> Any:
        """Return the data of a successful call."""
        status, content, _ = await self.call(method, path, body, **kwargs)
        assert status < 300, content
        return content["data"]

    async def patch_status(self, kind: Kind, name: str, **status: Any) -> None:
        """Write a status as the controller does."""
        await self.kube.patch(kind, name, {"status": status}, "status")

    async def mark_built(
        self, project: str, name: str, active: bool = True, kube: KubeClient | None = None, **status: Any
    ) -> None:
        """Mark a Deployment as built, and as active unless `active` is false; wait until the API shows it.

        `kube` is the client of its namespace, `status` has more fields.
        """
        kube = kube or self.kube
        when = "2026-11-21T10:00:00Z"
        condition = {
            "type": "Built",
            "status": "True",
            "reason": "Built",
            "message": "",
            "lastTransitionTime": when,
        }
        built = {
            "phase": "Active" if active else "Superseded",
            "image": f"registry.example/x@sha256:{'0' * 64}",
            "conditions": [condition],
            **status,
        }
        await kube.patch(DEPLOYMENT, name, {"status": built}, "status")
        if active:
            chosen = {"activeDeployment": name, "activatedAt": when}
            await kube.patch(PROJECT, project, {"status": chosen}, "status")
        # Two watches show the Deployment and the Project.
        async with asyncio.timeout(180):
            while not await self.is_built(name) or (active and not await self.is_active(project, name)):
                await asyncio.sleep(0.02)

    async def is_built(self, name: str) -> bool:
        """Return whether the API shows a Deployment as built."""
        status, found, _ = await self.call("GET", f"/v1/deployments/{id_of(name)}")
        return status == 200 and found["data"]["status"] in ("active", "superseded")

    async def is_active(self, project: str, name: str) -> bool:
        """Return whether the API shows a Deployment as the active one of its project."""
        status, found, _ = await self.call("GET", f"/v1/projects/{project}")
        return status == 200 and found["data"]["active_deployment_id"] == id_of(name)


@pytest.fixture
def settings() -> dict[str, str]:
    """Return additional settings; a test overrides this fixture to set some."""
    return {}


@pytest.fixture
async def testbed(tmp_path, kube, settings) -> AsyncIterator[ClusterApiTestbed]:
    namespace = kube.namespace
    config = parse(
        {
            "CREWYARD_TOKEN_KEY": secrets.token_hex(16),
            "CREWYARD_NAMESPACE": namespace,
            "CREWYARD_DATA": str(tmp_path),
            "CREWYARD_PUBLIC_URL": "http://crewyard.example",
            **settings,
        }
    )
    store = await Store.open(tmp_path, namespace)
    generated = api_keys.generate()
    admin = StoredKey(generated.key_id, generated.hash, "test", frozenset({"admin"}), None, "enterprise")
    async with TestClient(TestServer(make_app(config, store, kube, {generated.key_id: admin}))) as client:
        yield ClusterApiTestbed(client, kube, store, generated.text)
    await store.close()
