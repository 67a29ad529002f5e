"""T5: the end of one Run becomes visible → the next Run's pod appears, both by watches of one process."""

import asyncio
import time

from bench.lib.finding import Finding
from bench.lib.installation import CODE, Ground
from crds.kinds import POD, RUN
from crds.objects import Run

COUNT = 24
PLACES = 2


async def measure(ground: Ground) -> list[Finding]:
    """T5: a queue of short Runs in a project with two places."""
    shop = await ground.project("free")
    deployment = await shop.built({"main.py": CODE})
    ends: list[float] = []
    reports: list[float] = []
    pods: list[float] = []
    done = asyncio.Event()

    async def runs() -> None:
        version = (await ground.kube.list(RUN)).resource_version
        reported, ended = set(), set()
        async for event in ground.kube.watch(RUN, version):
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
                if len(ended) == COUNT:
                    done.set()
                    return

    async def made() -> None:
        label = f"crewyard.dev/project={shop.project},app.kubernetes.io/component=run"
        version = (await ground.kube.list(POD, label)).resource_version
        async for event in ground.kube.watch(POD, version, label):
            if event.type == "ADDED":
                pods.append(time.monotonic())

    watching = [asyncio.ensure_future(runs()), asyncio.ensure_future(made())]
    await asyncio.sleep(0.5)
    body = {"deployment": deployment, "entrypoint": "main:rests", "input": {"seconds": 0.5}}
    for _ in range(COUNT):
        await ground.yard.post("/v1/runs", body)
    await asyncio.wait_for(done.wait(), 300)
    await asyncio.sleep(0.5)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    gaps = [(pod - end) * 1000 for end, pod in zip(ends, pods[PLACES:], strict=False)]
    since = [(pod - said) * 1000 for said, pod in zip(reports, pods[PLACES:], strict=False)]
    return [
        Finding("T5", "a Run's end seen → the next one's pod", "ms", values=gaps[1:]),
        Finding("T5", "a Run's result reported → the next one's pod", "ms", values=since[1:]),
    ]
