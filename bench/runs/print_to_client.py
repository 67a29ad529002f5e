"""S1: a line is printed in the crew → a client has it: our event stream against `kubectl logs -f`.

Both follow the same pod in the same run; a line is the clock of the machine when it was printed, and its age
is taken when a client has it. Twenty lines a second, so that what is measured is the way and not a queue.
"""

import asyncio
import time

from bench.lib.finding import Finding
from bench.lib.installation import Ground
from crds.kinds import POD
from tests.e2e.yard import eventually

LINES = 300
WARM = 20
"""Lines at the beginning that do not count: a follower may just be connecting."""
CODE = """import time


def kickoff(inputs):
    time.sleep(2)
    for _ in range(inputs["count"]):
        print(time.time_ns(), flush=True)
        time.sleep(0.05)
"""


async def measure(ground: Ground) -> list[Finding]:
    """S1."""
    workshop = await ground.project()
    body = {"deployment": await workshop.built({"main.py": CODE}), "input": {"count": LINES}}
    run = (await ground.yard.post("/v1/runs", body))["id"]
    beside = asyncio.ensure_future(_kubectl(ground, run.replace("_", "-", 1)))
    ours: list[float] = []
    async for message in ground.yard.stream(f"/v1/runs/{run}/events", seconds=120):
        if message.event == "log":
            ours.append((time.time_ns() - int(message.data["message"])) / 1e6)
    theirs = await beside
    pairs = list(zip(theirs[WARM:], ours[WARM:], strict=False))
    return [Finding("S1", "print → client", "ms", pairs, peer="kubectl logs -f")]


async def _kubectl(ground: Ground, name: str) -> list[float]:
    await eventually(
        lambda: ground.kube.get(POD, name),
        lambda seen: seen is not None and seen["status"].get("phase") == "Running",
        60,
    )
    process = await asyncio.create_subprocess_exec(
        "kubectl", "-n", ground.kube.namespace, "logs", "-f", name, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    ages = []
    async for line in process.stdout:
        if line.strip().isdigit():
            ages.append((time.time_ns() - int(line)) / 1e6)
    await process.wait()
    return ages
