"""S2: a program prints a million lines, over ten rotations of its log and more: lost, doubled, reordered.

Ours is a run of it, read at the API's event stream. The peer is a bare Job of the same image and limits that
prints the same, read by `kubectl logs -f`. Beside it, what `kubectl logs -f` shows of our own pod: there the
runner repeats the crew's lines, and leaves some out where the reader does not keep up, which it says itself.

The kubelet looks every ten seconds whether a log has grown beyond 10 MiB. The pace makes 1.6 MB a second of
the lines with their time stamps, so that every look rotates; on a slower machine every second one.
"""

import asyncio
import json
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bench.lib import pods
from bench.lib.finding import Finding
from bench.lib.installation import JOB, Ground
from bench.runs.rotations import rotations
from crds.kinds import POD
from tests.e2e.yard import eventually

COUNT = 1_000_000
PACE = 8000
"""Lines a second."""
_NOTE = re.compile(rb"\[runner\] (\d+) lines are not repeated")
_LINE = re.compile(rb"(\d{7}) x{160}\n")
_RUNNER = (b"[runner] ", b"crewyard: ")
"""How lines of the runner's own begin."""


@dataclass
class Seen:
    """What a reader of a pod's log was shown."""

    numbers: list[int] = field(default_factory=list)
    unrepeated: int = 0
    """Lines that the runner said it left out."""
    damaged: int = 0
    """Lines that are neither whole nor the runner's."""

    def add(self, line: bytes) -> None:
        """One line with its line feed."""
        if found := _LINE.fullmatch(line):
            self.numbers.append(int(found[1]))
        elif note := _NOTE.match(line):
            self.unrepeated += int(note[1])
        else:
            self.damaged += not line.startswith(_RUNNER)


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
    like = await pods.template(ground)
    theirs = await _job(ground, like, count)
    ours, pod = await _run(ground, count)
    peer = f"kubectl logs -f of a bare Job: {theirs}; of the run's own pod: {pod}"
    return [Finding("S2", f"{count:,} lines", "", peer=peer, fact=ours)]


async def _job(ground: Ground, like: dict[str, Any], count: int) -> str:
    """What a bare Job's reader had."""
    job = pods.job(like, f"import main; main.lines({{'count': {count}, 'pace': {PACE}}})")
    name = job["metadata"]["name"]
    await ground.kube.create(JOB, job)
    try:
        listed = await eventually(
            lambda: ground.yard.kubectl("get", "pods", "-l", f"job-name={name}", "-o", "json"),
            lambda seen: json.loads(seen)["items"] != [],
        )
        pod = json.loads(listed)["items"][0]["metadata"]["name"]
        async with rotations(ground.kube.namespace, pod) as turned:
            seen = await _kubectl(ground, pod)
            await pods.finished(ground, pod, 600)
    finally:
        await ground.kube.delete(JOB, name)
    return f"{_counts(seen.numbers, count)}, damaged {seen.damaged}, {turned.told()}"


async def _run(ground: Ground, count: int) -> tuple[str, str]:
    """What a run's reader had at the event stream, and one of its pod's log."""
    asked = {"count": count, "pace": PACE}
    body = {"deployment": ground.deployment, "entrypoint": "main:lines", "input": asked}
    run = (await ground.yard.post("/v1/runs", body))["id"]
    name = run.replace("_", "-", 1)
    numbers: list[int] = []
    last = 0.0
    async with rotations(ground.kube.namespace, name) as turned:
        beside = asyncio.ensure_future(_kubectl(ground, name))
        async for message in ground.yard.stream(f"/v1/runs/{run}/events", seconds=3000):
            if message.event == "log":
                numbers.append(int(message.data["message"][:7]))
                last = time.time()
        seen = await beside
    output = (await ground.finished(run))["output"]
    ours = (
        f"{_counts(numbers, count)}, {turned.told()}; printed in {output['seconds']:.0f} s, "
        f"the last one at the client {last - output['end_ns'] / 1e9:.2f} s later"
    )
    missing, doubled, reordered = told(seen.numbers, count)
    pod = (
        f"{missing} not shown, of them {seen.unrepeated} that the runner says it does not repeat, "
        f"doubled {doubled}, reordered {reordered}, damaged {seen.damaged}"
    )
    return ours, pod


def _counts(numbers: Iterable[int], count: int) -> str:
    lost, doubled, reordered = told(numbers, count)
    return f"lost {lost}, doubled {doubled}, reordered {reordered}"


async def _kubectl(ground: Ground, name: str) -> Seen:
    """What `kubectl logs -f` shows of a pod, to its end."""
    await eventually(
        lambda: ground.kube.get(POD, name),
        lambda seen: seen is not None and seen["status"].get("phase") not in (None, "Pending"),
        60,
    )
    process = await asyncio.create_subprocess_exec(
        "kubectl", "-n", ground.kube.namespace, "logs", "-f", name, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    found = Seen()
    async for line in process.stdout:
        found.add(line)
    await process.wait()
    return found
