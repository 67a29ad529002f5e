"""T2: writes to the apiserver per Run by the controller, against those per Job by Kubernetes.

Ours are counted by the controller's metrics. The Job controller's are the apiserver's counts of writes of Job
status, new pods and patches of pods, which have no other source while only Jobs run.
"""

import asyncio
import re

from bench.lib import pods
from bench.lib.finding import Finding
from bench.lib.installation import JOB, MeasuredInstallation
from bench.runs.start import job_finished
from tests.e2e.testbed import eventually

OBJECT_COUNT = 20
CONTROLLER_METRICS_PATH = "/api/v1/namespaces/crewyard-system/services/crewyard-controller:9090/proxy/metrics"
_LINE = re.compile(r"^(\w+)(?:\{([^}]*)\})? ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def metric_sum(text: str, name: str, **labels: str) -> float:
    """Return the sum of a metric's samples with these labels. Pure."""
    total = 0.0
    for metric, inner, value in _LINE.findall(text):
        if metric == name and labels.items() <= dict(_LABEL.findall(inner)).items():
            total += float(value)
    return total


async def _controller_writes(installation: MeasuredInstallation) -> float:
    text = await installation.testbed.kubectl("get", "--raw", CONTROLLER_METRICS_PATH)
    kinds = ("Run", "Pod", "run", "pod", "runs", "pods")
    return sum(metric_sum(text, "crewyard_api_writes_total", kind=kind) for kind in kinds)


async def _job_controller_writes(installation: MeasuredInstallation) -> float:
    text = await installation.testbed.kubectl("get", "--raw", "/metrics")
    name = "apiserver_request_total"
    return (
        metric_sum(text, name, resource="jobs", subresource="status", verb="PUT")
        + metric_sum(text, name, resource="jobs", subresource="status", verb="PATCH")
        + metric_sum(text, name, resource="pods", subresource="", verb="POST")
        + metric_sum(text, name, resource="pods", subresource="", verb="PATCH")
    )


async def _finish_runs(installation: MeasuredInstallation, deployment: str) -> None:
    created = [
        await installation.testbed.post("/v1/runs", {"deployment": deployment}) for _ in range(OBJECT_COUNT)
    ]
    for run in created:
        await installation.finished(run["id"])
    await asyncio.sleep(3)


async def _wait_job_finished(installation: MeasuredInstallation, name: str) -> None:
    await eventually(
        lambda: installation.kube.get(JOB, name), lambda job: job is not None and job_finished(job), 60
    )


async def measure(installation: MeasuredInstallation) -> list[Finding]:
    """Measure T2: all Runs admitted immediately, then most of them queued."""
    pod_spec = await pods.template(installation)
    before = await _controller_writes(installation)
    await _finish_runs(installation, installation.deployment)
    admitted = (await _controller_writes(installation) - before) / OBJECT_COUNT
    free_project = await installation.project("free")
    queued_deployment = await free_project.deploy_and_wait(
        {"main.py": "def kickoff(inputs):\n    return inputs\n"}
    )
    before = await _controller_writes(installation)
    await _finish_runs(installation, queued_deployment)
    queued = (await _controller_writes(installation) - before) / OBJECT_COUNT
    before = await _job_controller_writes(installation)
    bodies = [pods.job(pod_spec) for _ in range(OBJECT_COUNT)]
    for body in bodies:
        await installation.kube.create(JOB, body)
        await _wait_job_finished(installation, body["metadata"]["name"])
    peer_writes = (await _job_controller_writes(installation) - before) / OBJECT_COUNT
    for body in bodies:
        await installation.kube.delete(JOB, body["metadata"]["name"])
    return [
        Finding(
            "T2",
            "writes for a Run by the controller, Events apart",
            "",
            peer="Kubernetes' for a Job",
            fact=f"admitted at once {admitted:.2f}, queued {queued:.2f}; "
            f"peer {peer_writes:.2f} (means of {OBJECT_COUNT})",
        )
    ]
