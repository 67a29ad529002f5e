"""T2: writes to the apiserver for one Run by the controller, against those for one Job by Kubernetes' own.

Ours are counted by the controller's metrics. The Job controller's are what the apiserver counts in writes
of jobs' status, new pods and patches of pods, which nobody else makes while only Jobs run.
"""

import asyncio
import re

from bench.lib import pods
from bench.lib.finding import Finding
from bench.lib.installation import JOB, Ground
from bench.runs.start import complete
from tests.e2e.yard import eventually

COUNT = 20
METRICS = "/api/v1/namespaces/crewyard-system/services/crewyard-controller:9090/proxy/metrics"
_LINE = re.compile(r"^(\w+)(?:\{([^}]*)\})? ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def counted(text: str, name: str, **labels: str) -> float:
    """The sum of a metric's samples that have these labels. Pure."""
    total = 0.0
    for found, inner, value in _LINE.findall(text):
        if found == name and labels.items() <= dict(_LABEL.findall(inner)).items():
            total += float(value)
    return total


async def _ours(ground: Ground) -> float:
    text = await ground.yard.kubectl("get", "--raw", METRICS)
    kinds = ("Run", "Pod", "run", "pod", "runs", "pods")
    return sum(counted(text, "crewyard_api_writes_total", kind=kind) for kind in kinds)


async def _theirs(ground: Ground) -> float:
    text = await ground.yard.kubectl("get", "--raw", "/metrics")
    name = "apiserver_request_total"
    return (
        counted(text, name, resource="jobs", subresource="status", verb="PUT")
        + counted(text, name, resource="jobs", subresource="status", verb="PATCH")
        + counted(text, name, resource="pods", subresource="", verb="POST")
        + counted(text, name, resource="pods", subresource="", verb="PATCH")
    )


async def _runs(ground: Ground, deployment: str) -> None:
    made = [await ground.yard.post("/v1/runs", {"deployment": deployment}) for _ in range(COUNT)]
    for run in made:
        await ground.finished(run["id"])
    await asyncio.sleep(3)


async def _ended(ground: Ground, name: str) -> None:
    await eventually(lambda: ground.kube.get(JOB, name), lambda seen: seen is not None and complete(seen), 60)


async def measure(ground: Ground) -> list[Finding]:
    """T2: all admitted at once, then most of them queued."""
    like = await pods.template(ground)
    before = await _ours(ground)
    await _runs(ground, ground.deployment)
    at_once = (await _ours(ground) - before) / COUNT
    small = await ground.project("free")
    queued_in = await small.built({"main.py": "def kickoff(inputs):\n    return inputs\n"})
    before = await _ours(ground)
    await _runs(ground, queued_in)
    queued = (await _ours(ground) - before) / COUNT
    before = await _theirs(ground)
    bodies = [pods.job(like) for _ in range(COUNT)]
    for body in bodies:
        await ground.kube.create(JOB, body)
        await _ended(ground, body["metadata"]["name"])
    theirs = (await _theirs(ground) - before) / COUNT
    for body in bodies:
        await ground.kube.delete(JOB, body["metadata"]["name"])
    return [
        Finding(
            "T2",
            "writes for a Run by the controller, Events apart",
            "",
            peer="Kubernetes' for a Job",
            fact=f"admitted at once {at_once:.2f}, queued {queued:.2f}; peer {theirs:.2f} (means of {COUNT})",
        )
    ]
