"""S2: a crew that prints a million lines: how many are lost, doubled, reordered; and what kubectl saw.

Both follow while the crew prints: one reader at the API's event stream, `kubectl logs -f` at the same pod.
"""

import asyncio
import time
from collections.abc import Iterable

from bench.finding import Finding
from bench.ground import Ground
from crds.kinds import POD
from tests.e2e.yard import eventually

COUNT = 1_000_000


def told(numbers: Iterable[int], count: int) -> tuple[int, int, int]:
    """Of the numbers 0 … count-1 that should have come in order: how many lost, doubled, reordered. Pure."""
    seen = bytearray(count)
    doubled = reordered = 0
    last = -1
    for number in numbers:
        doubled += seen[number]
        seen[number] = 1
        reordered += number < last
        last = max(last, number)
    return count - sum(seen), doubled, reordered


async def measure(ground: Ground, count: int = COUNT) -> list[Finding]:
    """S2."""
    await ground.crew()
    body = {"deployment": ground.deployment, "entrypoint": "main:lines", "input": {"count": count}}
    begun = time.monotonic()
    run = (await ground.yard.post("/v1/runs", body))["id"]
    name = run.replace("_", "-", 1)
    beside = asyncio.ensure_future(_kubectl(ground, name))
    ours: list[int] = []
    async for message in ground.yard.stream(f"/v1/runs/{run}/events", seconds=3000):
        if message.event == "log":
            ours.append(int(message.data["message"][:7]))
    took = time.monotonic() - begun
    theirs = await beside
    lost, doubled, reordered = told(ours, count)
    theirs_lost, theirs_doubled, _ = told(theirs, count)
    fact = (
        f"ours {lost} lost, {doubled} doubled, {reordered} reordered, all at the client after {took:.0f} s; "
        f"peer {theirs_lost} lost, {theirs_doubled} doubled"
    )
    return [Finding("S2", f"{count} lines", "", peer="kubectl logs -f", fact=fact)]


async def _kubectl(ground: Ground, name: str) -> list[int]:
    """The numbers that `kubectl logs -f` shows."""
    await eventually(
        lambda: ground.kube.get(POD, name),
        lambda seen: seen is not None and seen["status"].get("phase") != "Pending",
        60,
    )
    process = await asyncio.create_subprocess_exec(
        "kubectl", "-n", ground.kube.namespace, "logs", "-f", name, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    found = []
    async for line in process.stdout:
        head = line[:7]
        if head.isdigit():
            found.append(int(head))
    await process.wait()
    return found
