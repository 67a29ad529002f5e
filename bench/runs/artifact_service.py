"""API server with a separate store and without a cluster, for the memory figures of A1.

python -m bench.runs.artifact_service DIRECTORY BUCKET_URL or - RUN TOKEN_KEY ADMIN_KEY_ID ADMIN_KEY_HASH

Creates a claimed run, prints its port, and serves until terminated. Started by `bench.runs.artifact`.
"""

import asyncio
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path

import structlog
from aiohttp import web
from kubernetes.aio import client

from api.app import make_client_app
from api.auth.api_keys import StoredKey
from api.config import ApiConfig
from api.internal import routes
from api.store.index.claims.claims import ClaimRequest
from api.store.store import Store
from crds.objects import Project, Run
from kube.client import KubeClient

UID, POD, NONCE = "uid-of-the-run", "uid-of-the-pod", "nonce-of-the-pod"


async def _prepare(store: Store, run: str) -> None:
    metadata = {"resourceVersion": "1", "creationTimestamp": "2026-11-21T10:00:00Z"}
    await store.projects.observe(
        Project({"metadata": {**metadata, "name": "bench", "uid": "uid-of-the-project"}, "spec": {}})
    )
    spec = {"project": "bench", "deployment": "dep-bench"}
    body = {"metadata": {**metadata, "name": run, "uid": UID}, "spec": spec, "status": {}}
    await store.run_writer.observe(Run(body), datetime.now(UTC))
    await store.claims.grant(
        run, ClaimRequest(UID, POD, NONCE), {"deployment_id": "dep_bench"}, datetime.now(UTC)
    )


async def serve(directory: Path, bucket: str | None, run: str, token_key: str, admin: StoredKey) -> None:
    """Serve until cancelled."""
    store = await Store.open(directory, "crews", blobs_url=bucket)
    await _prepare(store, run)
    kube = KubeClient(client.ApiClient(client.Configuration(host="http://127.0.0.1:9")), "crews")
    config = ApiConfig("crews", "http://public", "http://internal", token_key, directory)
    app = make_client_app(config, store, kube, {admin.key_id: admin})
    routes.add_routes(app, config, store, kube)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    # Its only output is the port.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    directory, url, name, key, key_id, digest = sys.argv[1:]
    holder = StoredKey(key_id, digest, "bench", frozenset({"admin"}), None, "enterprise")
    asyncio.run(serve(Path(directory), None if url == "-" else url, name, key, holder))
