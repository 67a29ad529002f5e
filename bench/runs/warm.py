"""W1: POST → the crew's first line at a client, with a pod that waits. W2: what such a pod costs.

The crew has the modules of an example imported and prints a line; the peer is a bare Job of the same image
that imports the same. Its line counts when it is in the container's log, ours when the client of the event
stream has it. The next pair begins when the next waiting pod has imported: its processor time stands still.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bench.lib import pods
from bench.lib.finding import Finding
from bench.lib.installation import JOB, MeasuredInstallation
from bench.lib.pod_cgroup import cpu_seconds, process_mib, wait_quiet
from bench.runs.start import job_finished
from bench.sources.redeploy import Files, example_tree
from crds import names
from crds.kinds import POD, RUN
from crds.objects import Pod
from tests.e2e.testbed import eventually
from tests.e2e.upload_project import UploadProject

PAIR_COUNT = 21
IDLE_SECONDS = 60.0
IMPORTS = {"langgraph": "agent.graph", "crewai": "harbour.crew"}
_KICKOFF = "def kickoff(inputs):\n    print('first', flush=True)\n"


@dataclass(frozen=True)
class WarmCrew:
    """A deployed crew with a pod that waits, and the spec of a run's pod, which the peers copy."""

    installation: MeasuredInstallation
    example: str
    project: UploadProject
    spec: dict[str, object]

    @property
    def peer_script(self) -> str:
        """The peer's program: the same import and the same line."""
        path = "import sys; sys.path += ['/app', '/app/src', '/opt/crewyard/runner']"
        return f"{path}; import {IMPORTS[self.example]}; print('first', flush=True)"

    async def waiting_pod(self) -> Pod:
        """Return the pod that waits, after it has imported the entrypoint."""
        waiting = f"{names.LABEL_WARM},!{names.LABEL_RUN}"
        return await self.installation.waiting_pod(self.project.project, waiting)

    async def first_line_of_job(self) -> float:
        """Return the seconds from the creation of a bare Job to its line in the container's log."""
        body = pods.job(self.spec, self.peer_script)
        name = body["metadata"]["name"]
        created = time.time()
        await self.installation.kube.create(JOB, body)
        await eventually(lambda: self.installation.kube.get(JOB, name), job_finished, 120)
        listed = await self.installation.testbed.kubectl(
            "get", "pods", "-l", f"job-name={name}", "-o", "json"
        )
        pod = json.loads(listed)["items"][0]["metadata"]["name"]
        text = await pods.log(self.installation, pod)
        assert text.splitlines() == ["first"], text
        line = await pods.first_line(self.installation, pod)
        await self.installation.kube.delete(JOB, name)
        return line - created

    async def first_line_of_run(self) -> tuple[float, bool]:
        """Return the seconds from POST to the line at the client, and whether the run took the pod."""
        pod = await self.waiting_pod()
        testbed = self.installation.testbed
        started = time.monotonic()
        run = (await testbed.post("/v1/runs", {"deployment": self.project.project}))["id"]
        seconds = None
        async for message in testbed.stream(f"/v1/runs/{run}/events", seconds=120):
            if seconds is None and message.event == "log":
                seconds = time.monotonic() - started
        assert seconds is not None, f"{run} printed nothing"
        shown = await eventually(
            lambda: self.installation.kube.get(RUN, run.replace("_", "-", 1)),
            lambda raw: raw["status"].get("pod") is not None,
            60,
        )
        return seconds, shown["status"]["pod"]["name"] == pod.name


async def deploy(installation: MeasuredInstallation, example: str) -> WarmCrew:
    """Deploy an example with an entrypoint that only prints, and let a pod wait."""
    files: Files = {
        **example_tree(example),
        "first.py": f"import {IMPORTS[example]}\n{_KICKOFF}".encode(),
        "crew.toml": b'[deployment]\nentrypoint = "first:kickoff"\npython = "3.11"\n',
    }
    project = await installation.project()
    deployment = await project.deploy_and_wait(files)
    spec = await pods.template(installation)
    container = {**spec["containers"][0], "image": await project.image(deployment)}
    await installation.testbed.call("PATCH", f"/v1/projects/{project.project}", {"run": {"warm": 1}})
    return WarmCrew(installation, example, project, {**spec, "containers": [container]})


async def _idle_cost(pod_uid: str) -> tuple[float, float]:
    """Return the share of a core in per cent, and the MiB of the processes, of a pod that does nothing."""
    used, started = cpu_seconds(pod_uid), time.monotonic()
    await asyncio.sleep(IDLE_SECONDS)
    share = (cpu_seconds(pod_uid) - used) / (time.monotonic() - started) * 100
    return share, process_mib(pod_uid)


async def _idle_costs(crew: WarmCrew) -> list[Finding]:
    body = pods.pod(crew.spec, f"{crew.peer_script}; import time; time.sleep(600)")
    name = body["metadata"]["name"]
    peer = Pod(await crew.installation.kube.create(POD, body))
    await eventually(
        lambda: crew.installation.testbed.kubectl("logs", name, check=False),
        lambda text: text.startswith("first"),
        120,
    )
    await wait_quiet(peer.uid)
    (our_share, our_mib), (peer_share, peer_mib) = await asyncio.gather(
        _idle_cost((await crew.waiting_pod()).uid), _idle_cost(peer.uid)
    )
    await crew.installation.kube.delete(POD, name, grace_seconds=0)
    what = "the same import, asleep"
    return [
        Finding(
            "W2",
            f"{crew.example}: a waiting pod's share of a core",
            "%",
            values=[our_share],
            fact=f"over {IDLE_SECONDS:.0f} s; {what}: {peer_share:.2f} %",
        ),
        Finding(
            "W2",
            f"{crew.example}: memory of a waiting pod's processes",
            "MiB",
            pairs=[(peer_mib, our_mib)],
            peer=what,
        ),
    ]


def first_line(example: str) -> Callable[..., Awaitable[list[Finding]]]:
    """Return the measurement of W1 and W2 on an example."""

    async def measure(installation: MeasuredInstallation, count: int = PAIR_COUNT) -> list[Finding]:
        crew = await deploy(installation, example)
        pairs, taken = [], 0
        for _ in range(count):
            peer = await crew.first_line_of_job()
            ours, took = await crew.first_line_of_run()
            pairs.append((peer, ours))
            taken += took
        return [
            Finding(
                "W1",
                f"{example}: POST → first line at a client, with a waiting pod",
                pairs=pairs,
                peer="bare Job that imports the same, created → its line in the log",
                fact=f"{taken} of {count} runs took the waiting pod",
            ),
            *await _idle_costs(crew),
        ]

    return measure
