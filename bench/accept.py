"""L4: POST /v1/runs → 201, against the creation of one Run object; both over a kept connection.

The project's plan allows two runs at once and both places are taken: what is accepted waits, and does not
disturb the measurement.
"""

import secrets
import time

from bench.figures import percentile
from bench.finding import Finding
from bench.ground import CODE, Ground
from crds.kinds import RUN

PAIRS = 61


async def measure(ground: Ground) -> list[Finding]:
    """L4."""
    shop = await ground.project("free")
    deployment = await shop.built({"main.py": CODE})
    resting = {"deployment": deployment, "entrypoint": "main:rests", "input": {"seconds": 300}}
    for _ in range(2):
        await ground.yard.post("/v1/runs", resting)
    name = deployment.replace("_", "-", 1)
    pairs = []
    for _ in range(PAIRS):
        body = {
            "metadata": {"name": f"run-bench-{secrets.token_hex(5)}"},
            "spec": {"project": shop.project, "deployment": name, "input": {"topic": "tides"}},
        }
        begun = time.perf_counter()
        await ground.kube.create(RUN, body)
        peer = time.perf_counter() - begun
        begun = time.perf_counter()
        await ground.yard.post("/v1/runs", {"deployment": deployment, "input": {"topic": "tides"}})
        pairs.append((peer * 1000, (time.perf_counter() - begun) * 1000))
    worst = percentile([ours for _, ours in pairs[1:]], 0.99)
    return [
        Finding(
            "L4", "POST /v1/runs → 201", "ms", pairs, peer="one object created", fact=f"p99 {worst:.3g} ms"
        )
    ]
