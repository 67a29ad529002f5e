"""G1: push → Deployment object, by webhook, against `git ls-remote` and `kubectl create` by hand.

Every project has a repository of its own and is pushed to at most every twelve seconds, since builds are
begun no more often. Its configuration is wrong on purpose, and each pair waits until the pod that finds so
has ended, so that nothing of one push runs beside the next.
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
from pathlib import Path
from typing import Any

from bench.lib.finding import Finding
from bench.lib.installation import Ground
from crds.kinds import DEPLOYMENT, SECRET
from tests.e2e.demo import GIT_HOST
from tests.e2e.yard import eventually
from tests.testbed.git_server import GitServer, Repository

PROJECTS = 10
ROUNDS = 2
APART = 12.0
QUIET = 1.0
"""Seconds for the kubelet to take the pod down."""


class Seen:
    """When the Deployment of each commit was first shown by a watch."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.at: dict[str, float] = {}
        self._new = asyncio.Event()

    async def follow(self) -> None:
        """Watches until it is cancelled."""
        listing = await self._ground.kube.list(DEPLOYMENT)
        async for event in self._ground.kube.watch(DEPLOYMENT, listing.resource_version):
            sha = (event.object.get("spec") or {}).get("gitSha")
            if sha and event.type == "ADDED":
                self.at.setdefault(sha, time.monotonic())
                self._new.set()

    async def of(self, sha: str, seconds: float = 60) -> float:
        """When that commit's Deployment was seen."""
        async with asyncio.timeout(seconds):
            while sha not in self.at:
                self._new.clear()
                await self._new.wait()
        return self.at[sha]


@asynccontextmanager
async def watching(ground: Ground) -> AsyncIterator[Seen]:
    """A watch over all Deployments."""
    seen = Seen(ground)
    task = asyncio.create_task(seen.follow())
    await asyncio.sleep(0.5)
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _tell(ground: Ground, project: str, secret: str, sha: str) -> None:
    """The push, as GitHub tells it."""
    said = {
        "ref": "refs/heads/main",
        "after": sha,
        "repository": {"full_name": project, "default_branch": "main"},
    }
    body = json.dumps(said).encode()
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": secrets.token_hex(8),
        "X-Hub-Signature-256": f"sha256={signature}",
    }
    path = f"/v1/hooks/git/{project}"
    assert (await ground.yard.call("POST", path, data=body, headers=headers, key="")).data["effect"] == "look"


async def _by_hand(ground: Ground, url: str) -> float:
    """Seconds of a listing and of an object made with kubectl: of no project, so that nothing follows."""
    begun = time.monotonic()
    listing = await asyncio.create_subprocess_exec(
        "git", "ls-remote", url, "refs/heads/main", stdout=asyncio.subprocess.PIPE
    )
    said, _ = await listing.communicate()
    name = f"dep-bench-{secrets.token_hex(4)}"
    spec = {"project": "bench-nobody", "source": {"git": {"url": url, "commit": said.decode().split()[0]}}}
    await ground.yard.apply("Deployment", name, spec, "create")
    took = time.monotonic() - begun
    await ground.yard.kubectl("delete", "cdep", name, "--wait=false")
    return took


def _files(number: int) -> dict[str, str]:
    return {"main.py": f"# {number}\n", "crew.toml": '[deployment]\npython = "2.7"\n'}


async def measure(ground: Ground) -> list[Finding]:
    """Pairs of both, a project after the other."""
    secret, pairs = secrets.token_hex(16), list[tuple[float, float]]()
    name = f"bench-hook-{secrets.token_hex(3)}"
    await ground.kube.create(SECRET, {"metadata": {"name": name}, "stringData": {"token": secret}})
    address = os.environ["CREWYARD_HOST_ADDRESS"]
    try:
        with tempfile.TemporaryDirectory() as root, GitServer(Path(root), address) as server:
            async with watching(ground) as seen:
                followed = [await _follow(ground, server, name, seen) for _ in range(PROJECTS)]
                for number in range(ROUNDS):
                    await asyncio.sleep(APART)
                    for project, repository in followed:
                        hand = await _by_hand(ground, server.url(project))
                        sha = repository.commit(_files(number + 1), f"Change {number}")
                        begun = time.monotonic()
                        await _tell(ground, project, secret, sha)
                        pairs.append((hand, await seen.of(sha) - begun))
                        await _over(ground, project)
    finally:
        await ground.kube.delete(SECRET, name)
    peer = "git ls-remote and kubectl create by hand"
    return [Finding("G1", "push → Deployment object, by webhook", pairs=pairs, peer=peer)]


async def _follow(ground: Ground, server: GitServer, secret: str, seen: Seen) -> tuple[str, Repository]:
    """A project that follows a repository of its own, once its first Deployment is over."""
    project = f"bench-{secrets.token_hex(3)}"
    ground.projects.append(project)
    repository = server.create(project)
    sha = repository.commit(_files(0), "Begin")
    git = {"url": server.url(project, host=GIT_HOST), "interval": "1h"}
    spec: dict[str, Any] = {"source": {"git": git}, "webhook": {"secretRef": {"name": secret}}}
    await ground.yard.apply("Project", project, spec)
    await seen.of(sha)
    await _over(ground, project)
    return project, repository


async def _over(ground: Ground, project: str) -> None:
    """Waits until the newest Deployment is refused, which all are here, and its pod is taken down."""
    await eventually(
        lambda: ground.yard.get("/v1/deployments", project=project),
        lambda found: bool(found) and found[0]["status"] == "failed",
        120,
    )
    await asyncio.sleep(QUIET)
