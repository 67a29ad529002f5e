"""Shared base of measurements: the installation, an apiserver client, a minimal crew."""

import secrets
from dataclasses import dataclass, field
from typing import Any

from bench.lib.pod_cgroup import wait_quiet
from crds import names
from crds.kinds import POD, Kind
from crds.objects import Pod
from kube.client import KubeClient
from tests.e2e.testbed import NAMESPACE, E2eTestbed, eventually
from tests.e2e.upload_project import UploadProject

JOB = Kind("batch", "v1", "jobs", "Job")

CODE = '''import os
import sys
import time


def since_start():
    """Seconds since process 1 began, by the clock of the machine; the kernel counts in hundredths."""
    with open("/proc/1/stat") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def kickoff(inputs):
    print("first", flush=True)
    return {"end_ns": time.time_ns(), "since_start": since_start()}


def lines(inputs):
    """One by one, so many a second; each line is one write."""
    started = time.monotonic()
    for number in range(inputs["count"]):
        sys.stdout.write(f"{number:07d} {'x' * 160}\\n")
        sys.stdout.flush()
        ahead = started + number / inputs["pace"] - time.monotonic()
        if ahead > 0.01:
            time.sleep(ahead)
    return {"end_ns": time.time_ns(), "seconds": time.monotonic() - started}


def rests(inputs):
    time.sleep(inputs["seconds"])
'''


@dataclass
class MeasuredInstallation:
    """One installation under measurement."""

    testbed: E2eTestbed
    kube: KubeClient
    projects: list[str] = field(default_factory=list)
    _crew: UploadProject | None = None
    deployment: str = ""

    @classmethod
    async def open(cls) -> "MeasuredInstallation":
        """Connect to the installation that `make env` names."""
        return cls(await E2eTestbed.open(), await KubeClient.connect(NAMESPACE, "bench"))

    async def close(self) -> None:
        """Delete the created projects and close the connections."""
        for project in self.projects:
            await self.testbed.kubectl("delete", "cproj", project, "--ignore-not-found", "--wait=false")
        await self.kube.close()
        await self.testbed.close()

    async def project(self, plan: str = "enterprise") -> UploadProject:
        """Create a project; `close` deletes it."""
        name = f"bench-{secrets.token_hex(3)}"
        await self.testbed.post("/v1/projects", {"name": name, "plan": plan})
        self.projects.append(name)
        return UploadProject(self.testbed, name)

    async def crew(self) -> UploadProject:
        """Return the project of the crew above, built once; sets `deployment` to its id."""
        if self._crew is None:
            self._crew = await self.project()
            self.deployment = await self._crew.deploy_and_wait({"main.py": CODE})
        return self._crew

    async def waiting_pod(self, project: str, labels: str) -> Pod:
        """Return the pod of a project that waits for work, after it has imported its modules."""
        selector = f"{names.LABEL_PROJECT}={project},{labels}"

        async def running() -> list[Pod]:
            listed = (await self.kube.list(POD, selector)).items
            return [pod for pod in map(Pod, listed) if pod.phase == "Running" and not pod.deleting]

        found: list[Pod] = await eventually(running, lambda seen: len(seen) == 1, 120)
        await wait_quiet(found[0].uid)
        return found[0]

    async def finished(self, run: str, seconds: float = 300) -> dict[str, Any]:
        """Return a run after it has finished."""
        ended_run: dict[str, Any] = await eventually(
            lambda: self.testbed.get(f"/v1/runs/{run}"),
            lambda body: body["completed_at"] is not None,
            seconds,
        )
        return ended_run

    @property
    def object_name(self) -> str:
        """Name of the Deployment object."""
        return self.deployment.replace("_", "-", 1)
