"""S2: a program prints a million lines over ten and more log rotations: lost, duplicated, reordered lines.

Ours is a run, read at the API's event stream. The peer is a bare Job of the same image and limits that prints
the same, read by `kubectl logs -f`. Also shown: `kubectl logs -f` of the run's own pod, where the runner
repeats the crew's lines and omits some if the reader is too slow, which it reports.

The kubelet checks every ten seconds whether a log exceeds 10 MiB. The pace gives 1.6 MB per second including
timestamps, so every check rotates; on a slower machine every second one.
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
from bench.lib.installation import JOB, MeasuredInstallation
from bench.runs.rotations import count_rotations
from crds.kinds import POD
from tests.e2e.testbed import eventually

LINE_COUNT = 1_000_000
LINES_PER_SECOND = 8000
"""Pace of the program."""
_OMITTED_NOTE = re.compile(rb"\[runner\] (\d+) lines are not repeated")
_LINE = re.compile(rb"(\d{7}) x{160}\n")
_RUNNER_PREFIXES = (b"[runner] ", b"crewyard: ")
"""Prefixes of the runner's own lines."""


@dataclass
class LogLines:
    """Lines of a pod's log as a reader got them."""

    numbers: list[int] = field(default_factory=list)
    omitted: int = 0
    """Lines that the runner reported as omitted."""
    damaged: int = 0
    """Lines that are neither complete nor the runner's."""

    def add(self, line: bytes) -> None:
        """Add one line with its line feed."""
        if match := _LINE.fullmatch(line):
            self.numbers.append(int(match[1]))
        elif note := _OMITTED_NOTE.match(line):
            self.omitted += int(note[1])
        else:
            self.damaged += not line.startswith(_RUNNER_PREFIXES)


def count_defects(numbers: Iterable[int], count: int) -> tuple[int, int, int]:
    """Return how many of the ordered numbers 0 … count-1 were lost, duplicated, reordered. Pure."""
    occurred = bytearray(count)
    doubled = reordered = 0
    last = -1
    for number in numbers:
        doubled += occurred[number]
        occurred[number] = 1
        reordered += number < last
        last = max(last, number)
    return count - sum(occurred), doubled, reordered


async def measure(installation: MeasuredInstallation, count: int = LINE_COUNT) -> list[Finding]:
    """Measure S2."""
    pod_spec = await pods.template(installation)
    job_result = await _job(installation, pod_spec, count)
    run_result, pod_result = await _run(installation, count)
    peer = f"kubectl logs -f of a bare Job: {job_result}; of the run's own pod: {pod_result}"
    return [Finding("S2", f"{count:,} lines", "", peer=peer, fact=run_result)]


async def _job(installation: MeasuredInstallation, pod_spec: dict[str, Any], count: int) -> str:
    """Return the result of a bare Job's reader."""
    job = pods.job(pod_spec, f"import main; main.lines({{'count': {count}, 'pace': {LINES_PER_SECOND}}})")
    name = job["metadata"]["name"]
    await installation.kube.create(JOB, job)
    try:
        pod_list = await eventually(
            lambda: installation.testbed.kubectl("get", "pods", "-l", f"job-name={name}", "-o", "json"),
            lambda log_lines: json.loads(log_lines)["items"] != [],
        )
        pod = json.loads(pod_list)["items"][0]["metadata"]["name"]
        async with count_rotations(installation.kube.namespace, pod) as log_rotations:
            log_lines = await _kubectl(installation, pod)
            await pods.wait_finished(installation, pod, 600)
    finally:
        await installation.kube.delete(JOB, name)
    return f"{_counts(log_lines.numbers, count)}, damaged {log_lines.damaged}, {log_rotations.describe()}"


async def _run(installation: MeasuredInstallation, count: int) -> tuple[str, str]:
    """Return the results of a run's event stream reader and of its pod's log reader."""
    inputs = {"count": count, "pace": LINES_PER_SECOND}
    body = {"deployment": installation.deployment, "entrypoint": "main:lines", "input": inputs}
    run = (await installation.testbed.post("/v1/runs", body))["id"]
    name = run.replace("_", "-", 1)
    numbers: list[int] = []
    last = 0.0
    async with count_rotations(installation.kube.namespace, name) as log_rotations:
        kubectl_task = asyncio.ensure_future(_kubectl(installation, name))
        async for message in installation.testbed.stream(f"/v1/runs/{run}/events", seconds=3000):
            if message.event == "log":
                numbers.append(int(message.data["message"][:7]))
                last = time.time()
        log_lines = await kubectl_task
    output = (await installation.finished(run))["output"]
    run_result = (
        f"{_counts(numbers, count)}, {log_rotations.describe()}; printed in {output['seconds']:.0f} s, "
        f"the last one at the client {last - output['end_ns'] / 1e9:.2f} s later"
    )
    missing, doubled, reordered = count_defects(log_lines.numbers, count)
    pod_result = (
        f"{missing} not shown, of them {log_lines.omitted} that the runner says it does not repeat, "
        f"doubled {doubled}, reordered {reordered}, damaged {log_lines.damaged}"
    )
    return run_result, pod_result


def _counts(numbers: Iterable[int], count: int) -> str:
    lost, doubled, reordered = count_defects(numbers, count)
    return f"lost {lost}, doubled {doubled}, reordered {reordered}"


async def _kubectl(installation: MeasuredInstallation, name: str) -> LogLines:
    """Return what `kubectl logs -f` shows of a pod until it ends."""
    await eventually(
        lambda: installation.kube.get(POD, name),
        lambda body: body is not None and body["status"].get("phase") not in (None, "Pending"),
        60,
    )
    process = await asyncio.create_subprocess_exec(
        "kubectl", "-n", installation.kube.namespace, "logs", "-f", name, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    log_lines = LogLines()
    async for line in process.stdout:
        log_lines.add(line)
    await process.wait()
    return log_lines
