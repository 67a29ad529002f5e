"""G1: push → Deployment object, by webhook, against manual `git ls-remote` and `kubectl create`.

Every project has a separate repository and gets at most one push every twelve seconds, because builds start
no more often. Its configuration is invalid on purpose, and each pair waits until the pod that detects this
has ended, so pushes do not overlap.
"""

import asyncio
import hashlib
import hmac
import json
import os
import secrets
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation
from crds.kinds import DEPLOYMENT, SECRET
from tests.e2e.demo import GIT_HOST
from tests.e2e.testbed import eventually
from tests.testbed.git_server import GitServer, Repository

PROJECT_COUNT = 10
ROUND_COUNT = 2
PUSH_INTERVAL_SECONDS = 12.0
POD_REMOVAL_SECONDS = 1.0
"""Time for the kubelet to remove the pod."""


class DeploymentWatch:
    """When a watch first showed the Deployment of each commit."""

    def __init__(self, installation: MeasuredInstallation) -> None:
        self._installation = installation
        self.at: dict[str, float] = {}
        self._new = asyncio.Event()

    async def follow(self) -> None:
        """List and watch until cancelled: the server ends a watch after minutes."""
        while True:
            listing = await self._installation.kube.list(DEPLOYMENT)
            for deployment in listing.items:
                self._saw(deployment)
            async for event in self._installation.kube.watch(DEPLOYMENT, listing.resource_version):
                self._saw(event.object)

    def _saw(self, deployment: dict[str, Any]) -> None:
        if sha := (deployment.get("spec") or {}).get("gitSha"):
            self.at.setdefault(sha, time.monotonic())
            self._new.set()

    async def of(self, sha: str, seconds: float = 60) -> float:
        """Return when that commit's Deployment appeared."""
        async with asyncio.timeout(seconds):
            while sha not in self.at:
                self._new.clear()
                await self._new.wait()
        return self.at[sha]


@asynccontextmanager
async def watch_deployments(installation: MeasuredInstallation) -> AsyncIterator[DeploymentWatch]:
    """Watch all Deployments during the block."""
    deployment_watch = DeploymentWatch(installation)
    task = asyncio.create_task(deployment_watch.follow())
    await asyncio.sleep(0.5)
    try:
        yield deployment_watch
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _post_webhook(installation: MeasuredInstallation, project: str, secret: str, sha: str) -> None:
    """Send the push event as GitHub does."""
    event = {
        "ref": "refs/heads/main",
        "after": sha,
        "repository": {"full_name": project, "default_branch": "main"},
    }
    body = json.dumps(event).encode()
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": secrets.token_hex(8),
        "X-Hub-Signature-256": f"sha256={signature}",
    }
    path = f"/v1/hooks/git/{project}"
    assert (await installation.testbed.call("POST", path, data=body, headers=headers, key="")).data[
        "effect"
    ] == "look"


async def _create_manually(installation: MeasuredInstallation, url: str) -> float:
    """Return the seconds of a listing and a kubectl create; without a project, so nothing happens next."""
    started = time.monotonic()
    listing = await asyncio.create_subprocess_exec(
        "git", "ls-remote", url, "refs/heads/main", stdout=asyncio.subprocess.PIPE
    )
    output, _ = await listing.communicate()
    name = f"dep-bench-{secrets.token_hex(4)}"
    spec = {"project": "bench-nobody", "source": {"git": {"url": url, "commit": output.decode().split()[0]}}}
    await installation.testbed.apply("Deployment", name, spec, "create")
    seconds = time.monotonic() - started
    await installation.testbed.kubectl("delete", "cdep", name, "--wait=false")
    return seconds


def _files(number: int) -> dict[str, str]:
    return {"main.py": f"# {number}\n", "crew.toml": '[deployment]\npython = "2.7"\n'}


@dataclass
class PushTargets:
    """Projects with a webhook, each with a repository of its own."""

    installation: MeasuredInstallation
    server: GitServer
    secret: str
    deployment_watch: DeploymentWatch
    repositories: dict[str, Repository] = field(default_factory=dict)
    push_count: int = 0

    async def push(self, project: str) -> float:
        """Return the seconds from a push to its Deployment object, after the Deployment has failed."""
        self.push_count += 1
        sha = self.repositories[project].commit(_files(self.push_count), f"Change {self.push_count}")
        started = time.monotonic()
        await _post_webhook(self.installation, project, self.secret, sha)
        seconds = await self.deployment_watch.of(sha) - started
        await _wait_failed(self.installation, project)
        return seconds

    async def push_all(self) -> list[float]:
        """Push to each project once; return the seconds of each."""
        await asyncio.sleep(PUSH_INTERVAL_SECONDS)
        return [await self.push(project) for project in self.repositories]


@asynccontextmanager
async def push_targets(installation: MeasuredInstallation, count: int) -> AsyncIterator[PushTargets]:
    """Create so many projects; serve their repositories during the block."""
    secret, name = secrets.token_hex(16), f"bench-hook-{secrets.token_hex(3)}"
    await installation.kube.create(SECRET, {"metadata": {"name": name}, "stringData": {"token": secret}})
    try:
        with (
            tempfile.TemporaryDirectory() as root,
            GitServer(Path(root), os.environ["CREWYARD_HOST_ADDRESS"]) as server,
        ):
            async with watch_deployments(installation) as deployment_watch:
                targets = PushTargets(installation, server, secret, deployment_watch)
                for _ in range(count):
                    project, repository = await _create_project(installation, server, name, deployment_watch)
                    targets.repositories[project] = repository
                yield targets
    finally:
        await installation.kube.delete(SECRET, name)


async def measure(installation: MeasuredInstallation) -> list[Finding]:
    """Measure pairs of both, one project after the other."""
    pairs: list[tuple[float, float]] = []
    async with push_targets(installation, PROJECT_COUNT) as targets:
        for _ in range(ROUND_COUNT):
            await asyncio.sleep(PUSH_INTERVAL_SECONDS)
            for project in targets.repositories:
                manual_seconds = await _create_manually(installation, targets.server.url(project))
                pairs.append((manual_seconds, await targets.push(project)))
    peer = "git ls-remote and kubectl create by hand"
    return [Finding("G1", "push → Deployment object, by webhook", pairs=pairs, peer=peer)]


async def _create_project(
    installation: MeasuredInstallation, server: GitServer, secret: str, deployment_watch: DeploymentWatch
) -> tuple[str, Repository]:
    """Create a project with a new repository; return both after its first Deployment has failed."""
    project = f"bench-{secrets.token_hex(3)}"
    installation.projects.append(project)
    repository = server.create(project)
    sha = repository.commit(_files(0), "Begin")
    git = {"url": server.url(project, host=GIT_HOST), "interval": "1h"}
    spec: dict[str, Any] = {"source": {"git": git}, "webhook": {"secretRef": {"name": secret}}}
    await installation.testbed.apply("Project", project, spec)
    await deployment_watch.of(sha)
    await _wait_failed(installation, project)
    return project, repository


async def _wait_failed(installation: MeasuredInstallation, project: str) -> None:
    """Wait until the newest Deployment has failed, as all do here, and its pod is removed."""
    await eventually(
        lambda: installation.testbed.get("/v1/deployments", project=project),
        lambda deployments: bool(deployments) and deployments[0]["status"] == "failed",
        120,
    )
    await asyncio.sleep(POD_REMOVAL_SECONDS)
