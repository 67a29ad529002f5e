"""T5: the end of one Run is visible → the next Run's pod exists, both watched by one process."""

import asyncio
import time

from bench.lib.finding import Finding
from bench.lib.installation import CODE, MeasuredInstallation
from crds.kinds import POD, RUN
from crds.objects import Run

RUN_COUNT = 24
CONCURRENT_RUNS = 2


async def measure(installation: MeasuredInstallation) -> list[Finding]:
    """Measure T5: a queue of short Runs in a project with two run slots."""
    upload_project = await installation.project("free")
    deployment = await upload_project.deploy_and_wait({"main.py": CODE})
    ends: list[float] = []
    reports: list[float] = []
    pods: list[float] = []
    done = asyncio.Event()

    async def runs() -> None:
        version = (await installation.kube.list(RUN)).resource_version
        reported, ended = set(), set()
        async for event in installation.kube.watch(RUN, version):
            raw = event.object
            if (raw.get("spec") or {}).get("deployment") != deployment.replace("_", "-", 1):
                continue
            name = raw["metadata"]["name"]
            if (raw.get("status") or {}).get("result") and name not in reported:
                reported.add(name)
                reports.append(time.monotonic())
            if Run(raw).ended and name not in ended:
                ended.add(name)
                ends.append(time.monotonic())
                if len(ended) == RUN_COUNT:
                    done.set()
                    return

    async def watch_pods() -> None:
        label = f"crewyard.dev/project={upload_project.project},app.kubernetes.io/component=run"
        version = (await installation.kube.list(POD, label)).resource_version
        async for event in installation.kube.watch(POD, version, label):
            if event.type == "ADDED":
                pods.append(time.monotonic())

    watching = [asyncio.ensure_future(runs()), asyncio.ensure_future(watch_pods())]
    await asyncio.sleep(0.5)
    body = {"deployment": deployment, "entrypoint": "main:rests", "input": {"seconds": 0.5}}
    for _ in range(RUN_COUNT):
        await installation.testbed.post("/v1/runs", body)
    await asyncio.wait_for(done.wait(), 300)
    await asyncio.sleep(0.5)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    gaps = [(pod - end) * 1000 for end, pod in zip(ends, pods[CONCURRENT_RUNS:], strict=False)]
    after_reports = [
        (pod - reported_at) * 1000 for reported_at, pod in zip(reports, pods[CONCURRENT_RUNS:], strict=False)
    ]
    return [
        Finding("T5", "a Run's end seen → the next one's pod", "ms", values=gaps[1:]),
        Finding("T5", "a Run's result reported → the next one's pod", "ms", values=after_reports[1:]),
    ]
