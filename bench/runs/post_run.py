"""L4: POST /v1/runs → 201, against the creation of one Run object; both over a kept connection.

A facade of its own with each store, and no controller: what is accepted waits, and does not disturb the
measurement. The pauses let the projector see what was made before the next is asked for.
"""

import asyncio
import secrets
import time

from bench.api.api_server import STORES, Facade, facade
from bench.lib.finding import Finding
from bench.lib.installation import Ground
from crds.kinds import RUN

PAIRS = 201
PAUSE = 0.02


async def _pair(ours: Facade, deployment: str) -> tuple[float, float]:
    spec = {"project": "shop", "deployment": deployment, "input": {"topic": "tides"}}
    body = {"metadata": {"name": f"run-bench-{secrets.token_hex(5)}"}, "spec": spec}
    begun = time.perf_counter()
    await ours.kube.create(RUN, body)
    peer = time.perf_counter() - begun
    await asyncio.sleep(PAUSE)
    asked = {"deployment": deployment.replace("-", "_", 1), "input": {"topic": "tides"}}
    begun = time.perf_counter()
    await ours.call("POST", "/v1/runs", asked)
    own = time.perf_counter() - begun
    await asyncio.sleep(PAUSE)
    return peer * 1000, own * 1000


async def measure(ground: Ground) -> list[Finding]:
    """L4, with both stores."""
    found = []
    for store in STORES:
        async with facade(store) as ours:
            (deployment,) = await ours.project("shop")
            pairs = [await _pair(ours, deployment) for _ in range(PAIRS)]
        found.append(Finding("L4", f"POST /v1/runs → 201, {store}", "ms", pairs, peer="one object created"))
    return found
