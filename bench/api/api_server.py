"""A separate API server for measurements: a process with its own namespace and store.

The installed one is shared and limited by its pod; this one can use the whole machine, and its store can be
SQLite or PostgreSQL. No controller watches its namespace: accepted runs stay pending.
"""

import asyncio
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from api.store.sql.migrate import migrate_postgres
from api.store.store import Store
from bench.api.prepared_store import fill
from crds import api_keys
from crds.kinds import DEPLOYMENT, PROJECT, Kind
from kube.client import KubeClient
from tests.testbed.ports import free_port
from tests.unit.api.store.postgres_server import PostgresServer

NAMESPACE = Kind("", "v1", "namespaces", "Namespace")
STORES = ("sqlite", "postgres")
START_TIMEOUT_SECONDS = 60.0
PLAN = {"requests_per_minute": 100_000_000, "concurrent_runs": 10}
"""Requests are counted but not limited: the measurement is about speed."""


@dataclass
class ApiServer:
    """A running API server; `session` sends the admin `key` to `url`."""

    url: str
    key: str
    kube: KubeClient
    session: aiohttp.ClientSession
    settings: Mapping[str, str]
    pid: int

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the data of a response. Raises RuntimeError with the body of an error."""
        async with self.session.request(method, path, json=body) as response:
            document = await response.json()
            if response.status >= 400:
                raise RuntimeError(f"{method} {path}: {response.status} {document}")
            return document["data"]

    async def project(self, name: str, deployments: int = 1) -> list[str]:
        """Create a project with built deployments, the first one active, as a controller would."""
        await self.call("POST", "/v1/projects", {"name": name, "plan": "enterprise"})
        created: list[str] = []
        for _ in range(deployments):
            deployment = f"dep-{secrets.token_hex(5)}"
            spec = {"project": name, "source": {"archive": {"upload": "upl_1"}}}
            await self.kube.create(DEPLOYMENT, {"metadata": {"name": deployment}, "spec": spec})
            condition = {
                "type": "Built",
                "status": "True",
                "reason": "Built",
                "message": "",
                "lastTransitionTime": "2026-11-21T10:00:00Z",
            }
            status = {
                "phase": "Superseded" if created else "Active",
                "image": f"registry.example/x@sha256:{'0' * 64}",
                "conditions": [condition],
            }
            await self.kube.patch(DEPLOYMENT, deployment, {"status": status}, "status")
            created.append(deployment)
        active = {"activeDeployment": created[0], "activatedAt": "2026-11-21T10:00:00Z"}
        await self.kube.patch(PROJECT, name, {"status": active}, "status")
        path = f"/v1/deployments/{created[-1].replace('-', '_', 1)}"
        async with asyncio.timeout(10):
            while True:
                async with self.session.get(path) as response:
                    if response.status == 200:
                        return created
                await asyncio.sleep(0.02)


@asynccontextmanager
async def api_server(
    store: str = "sqlite", runs: int = 0, kubeconfig: Path | None = None
) -> AsyncIterator[ApiServer]:
    """Run an API server with this many finished runs; `kubeconfig` is its connection to the cluster."""
    namespace = f"bench-{secrets.token_hex(4)}"
    kube = await KubeClient.connect(namespace, "bench")
    directory = Path(tempfile.mkdtemp(prefix="crewyard-bench-"))
    server = PostgresServer() if store == "postgres" else None
    database_url = server.database() if server else None
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await kube.call("POST", "/api/v1/namespaces", body=body)
    key = api_keys.generate()
    record = {"id": key.key_id, "hash": key.hash, "scopes": ["admin"], "plan": "enterprise"}
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {
        "CREWYARD_TOKEN_KEY": secrets.token_hex(16),
        "CREWYARD_NAMESPACE": namespace,
        "CREWYARD_PUBLIC_URL": url,
        "CREWYARD_PORT": str(port),
        "CREWYARD_DATA": str(directory / "data"),
        "CREWYARD_DATABASE_URL": database_url or "",
        "CREWYARD_PLANS": json.dumps({"enterprise": PLAN}),
        "CREWYARD_ADMIN_KEYS": json.dumps([record]),
        # Do not seal the logs of the prepared runs: they have none.
        "CREWYARD_SEAL_AFTER": "1000000",
        **({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {}),
    }
    if database_url:
        await migrate_postgres(database_url)
    if runs:
        prepared = await Store.open(directory / "data", namespace, database_url)
        await fill(prepared, runs)
        await prepared.close()
    log = (directory / "log").open("wb")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "api", env={**os.environ, **settings}, stdout=log, stderr=log
    )
    headers = {"Authorization": f"Bearer {key.text}"}
    session = aiohttp.ClientSession(url, headers=headers, timeout=aiohttp.ClientTimeout(total=60))
    try:
        await _wait_ready(session, process, directory / "log")
        yield ApiServer(url, key.text, kube, session, settings, process.pid)
    finally:
        await session.close()
        if process.returncode is None:
            process.terminate()
            await process.wait()
        log.close()
        await kube.call("DELETE", f"/api/v1/namespaces/{namespace}")
        await kube.close()
        if server:
            server.close()
        shutil.rmtree(directory, ignore_errors=True)


async def _wait_ready(session: aiohttp.ClientSession, process: asyncio.subprocess.Process, log: Path) -> None:
    async with asyncio.timeout(START_TIMEOUT_SECONDS):
        while True:
            if process.returncode is not None:
                raise RuntimeError(f"the API server exited: {log.read_text()[-2000:]}")
            try:
                async with session.get("/readyz") as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)
