"""S1: a line printed in the crew → received by a client: our event stream against `kubectl logs -f`.

Both follow the same pod in the same run. A line is the machine's clock at print time; its age is computed on
arrival. Twenty lines per second, to measure latency and not a queue.
"""

import asyncio
import time

from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation
from crds.kinds import POD
from tests.e2e.testbed import eventually

LINE_COUNT = 300
WARMUP_LINES = 20
"""First lines, which do not count: a client may still be connecting."""
CODE = """import time


def kickoff(inputs):
    time.sleep(2)
    for _ in range(inputs["count"]):
        print(time.time_ns(), flush=True)
        time.sleep(0.05)
"""


async def measure(installation: MeasuredInstallation) -> list[Finding]:
    """Measure S1."""
    upload_project = await installation.project()
    body = {
        "deployment": await upload_project.deploy_and_wait({"main.py": CODE}),
        "input": {"count": LINE_COUNT},
    }
    run = (await installation.testbed.post("/v1/runs", body))["id"]
    kubectl_task = asyncio.ensure_future(_kubectl(installation, run.replace("_", "-", 1)))
    our_ages: list[float] = []
    async for message in installation.testbed.stream(f"/v1/runs/{run}/events", seconds=120):
        if message.event == "log":
            our_ages.append((time.time_ns() - int(message.data["message"])) / 1e6)
    peer_ages = await kubectl_task
    pairs = list(zip(peer_ages[WARMUP_LINES:], our_ages[WARMUP_LINES:], strict=False))
    return [Finding("S1", "print → client", "ms", pairs, peer="kubectl logs -f")]


async def _kubectl(installation: MeasuredInstallation, name: str) -> list[float]:
    await eventually(
        lambda: installation.kube.get(POD, name),
        lambda body: body is not None and body["status"].get("phase") == "Running",
        60,
    )
    process = await asyncio.create_subprocess_exec(
        "kubectl", "-n", installation.kube.namespace, "logs", "-f", name, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    ages = []
    async for line in process.stdout:
        if line.strip().isdigit():
            ages.append((time.time_ns() - int(line)) / 1e6)
    await process.wait()
    return ages
