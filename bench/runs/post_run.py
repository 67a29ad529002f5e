"""L4: POST /v1/runs → 201, against the creation of one Run object; both over a keep-alive connection.

A separate API server with each store, without a controller: accepted runs stay pending and do not disturb the
measurement. The pauses let the projector process each object before the next request.
"""

import asyncio
import secrets
import time

from bench.api.api_server import STORES, ApiServer, api_server
from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation
from crds.kinds import RUN

PAIR_COUNT = 201
PAUSE_SECONDS = 0.02


async def _pair(server: ApiServer, deployment: str) -> tuple[float, float]:
    spec = {"project": "shop", "deployment": deployment, "input": {"topic": "tides"}}
    body = {"metadata": {"name": f"run-bench-{secrets.token_hex(5)}"}, "spec": spec}
    started = time.perf_counter()
    await server.kube.create(RUN, body)
    peer_seconds = time.perf_counter() - started
    await asyncio.sleep(PAUSE_SECONDS)
    request = {"deployment": deployment.replace("-", "_", 1), "input": {"topic": "tides"}}
    started = time.perf_counter()
    await server.call("POST", "/v1/runs", request)
    our_seconds = time.perf_counter() - started
    await asyncio.sleep(PAUSE_SECONDS)
    return peer_seconds * 1000, our_seconds * 1000


async def measure(installation: MeasuredInstallation) -> list[Finding]:
    """Measure L4 with both stores."""
    findings = []
    for store in STORES:
        async with api_server(store) as server:
            (deployment,) = await server.project("shop")
            pairs = [await _pair(server, deployment) for _ in range(PAIR_COUNT)]
        findings.append(
            Finding("L4", f"POST /v1/runs → 201, {store}", "ms", pairs, peer="one object created")
        )
    return findings
