"""A test bed whose two processes reach the apiserver through a proxy each, with all that the scenarios need.

`crew` is a project with two built deployments; `line` follows a repository whose
two trees are built. Called by `tests.campaign.cuts.passes`.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from crds.kinds import DEPLOYMENT, PROJECT, RUN
from crds.names import ANNOTATION_REQUESTED_AT, id_of, name_of
from crds.times import format_time
from tests.campaign.child import Child
from tests.campaign.proxy.call import ProxiedRequest
from tests.campaign.proxy.rule import RequestRecorder
from tests.campaign.proxy.server import ApiserverProxy, apiserver_proxy
from tests.campaign.testbed import ROOT, CampaignTestbed, open_testbed
from tests.testbed.git_server import GitServer, Repository

OTHER, LINE = "dep-other", "line"
CODE = "def kickoff():\n    return {variant!r}\n"
QUIET = 1.0
"""Seconds without a write after which a scenario has come to rest."""
REST_SECONDS = 60.0


@dataclass
class CutStage:
    """One test bed; its scenarios are played one after another."""

    testbed: CampaignTestbed
    proxies: dict[str, ApiserverProxy]
    counts: dict[str, RequestRecorder]
    repository: Repository
    url: str
    images: dict[str, str] = field(default_factory=dict)
    """The image of each tree that was built, by its variant."""
    commits: dict[str, str] = field(default_factory=dict)
    """The variant of each commit."""
    subjects: list[tuple[Any, str, Any]] = field(default_factory=list)
    """Scenario, subject and what was seen of it, to be looked at again at the end."""

    def child(self, process: str) -> Child:
        """The process of that name."""
        return self.testbed.api if process == "api" else self.testbed.controller

    def writes(self) -> list[tuple[str, ProxiedRequest]]:
        """The writes that succeeded so far, by process; in their order within each."""
        return [
            (process, call)
            for process, count in self.counts.items()
            for call, status in count.calls
            if call.writes and status < 400
        ]

    async def wait_idle(self) -> None:
        """Wait until nothing was written for a second: nothing of a scenario is to meet the next."""
        loop = asyncio.get_running_loop()
        end = loop.time() + REST_SECONDS
        before, since = len(self.writes()), loop.time()
        while loop.time() - since < QUIET and loop.time() < end:
            await asyncio.sleep(0.1)
            if len(self.writes()) != before:
                before, since = len(self.writes()), loop.time()

    async def wait_for(self, look: Callable[[], Awaitable[bool]], seconds: float = 150) -> None:
        """Wait until it is so. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not await look():
                await asyncio.sleep(0.1)

    async def wait_until(self, holds: Callable[[], bool], seconds: float = 150) -> None:
        """Wait until it holds. Raises TimeoutError."""

        async def look() -> bool:
            return holds()

        await self.wait_for(look, seconds)

    async def wait_shown(self, run: str, status: str) -> None:
        """Wait until object and API show the Run with that status. Raises TimeoutError."""

        async def look() -> bool:
            raw = await self.testbed.kube.get(RUN, run)
            record = await self.testbed.ask("GET", f"/v1/runs/{id_of(run)}")
            return bool(
                raw and raw["status"].get("phase") == status.capitalize() and record["status"] == status
            )

        await self.wait_for(look)

    async def commit(self, variant: str) -> str:
        """A commit of that variant's tree, which the project's next poll finds. Return its SHA."""
        files = {"main.py": CODE.format(variant=variant)}
        sha = await asyncio.to_thread(self.repository.commit, files, f"Say {variant}, {secrets.token_hex(4)}")
        self.commits[sha] = variant
        return sha

    async def request_poll(self) -> None:
        """Request a poll of the repository, as a webhook or a user does."""
        asked = {"metadata": {"annotations": {ANNOTATION_REQUESTED_AT: format_time(datetime.now(UTC))}}}
        await self.testbed.kube.patch(PROJECT, LINE, asked)


@contextlib.asynccontextmanager
async def stage(directory: Path, repositories: bool = True, tree: Path = ROOT) -> AsyncIterator[CutStage]:
    """A stage, ready, of a tree's code; without `repositories` there is no project that follows one."""
    # Ended Runs of projects that say so go soon; those of `crew` stay.
    settings = {"CREWYARD_RUN_TTL": "2"}
    (directory / "git").mkdir(parents=True)
    for process in ("api", "controller"):
        (directory / process).mkdir()
    async with contextlib.AsyncExitStack() as stack:
        proxies = {
            process: await stack.enter_async_context(apiserver_proxy(directory / process))
            for process in ("api", "controller")
        }
        counts = {process: RequestRecorder() for process in proxies}
        for process, proxy in proxies.items():
            proxy.rules.append(counts[process])
        found = await stack.enter_async_context(
            open_testbed(
                directory,
                tree=tree,
                settings=settings,
                kubeconfig=proxies["controller"].kubeconfig,
                api_kubeconfig=proxies["api"].kubeconfig,
                start=False,
            )
        )
        server = stack.enter_context(GitServer(directory / "git", found.host))
        made = CutStage(found, proxies, counts, server.create(LINE), server.url(LINE))
        await found.api.start()
        await found.create_project(retention={"runs": "1h"})
        await found.deploy(OTHER)
        await found.controller.start()
        await found.wait_active(OTHER)
        if repositories:
            await _build(made)
        await made.wait_idle()
        yield made


async def _build(made: CutStage) -> None:
    """Follow the repository, and build both variants."""
    for variant in ("ebb", "flood"):
        sha = await made.commit(variant)
        if variant == "ebb":
            git = {"url": made.url, "ref": {"branch": "main"}, "interval": "1h"}
            await made.testbed.ask("POST", "/v1/projects", {"name": LINE, "source": {"git": git}})
        await made.request_poll()
        await made.wait_for(partial(_seen, made, sha))
        # Two commits in quick succession would wait for one another; one that was asked for does not.
        body = {"project": LINE, "source": {"git": {"commit": sha}}}
        deployment = await made.testbed.ask("POST", "/v1/deployments", body)
        await built(made, str(deployment["id"]))
        found = await made.testbed.kube.get(DEPLOYMENT, name_of(deployment["id"]))
        assert found is not None
        made.images[variant] = found["status"]["image"]


async def _seen(made: CutStage, sha: str) -> bool:
    """Whether the controller knows the commit, and with it the tree: what is built then can be reused."""
    project = await made.testbed.kube.get(PROJECT, LINE)
    return project is not None and sha in str(project.get("status"))


async def built(made: CutStage, deployment: str, seconds: float = 900) -> None:
    """Wait until a deployment is active. Raises AssertionError where it fails, TimeoutError."""
    async with asyncio.timeout(seconds):
        while True:
            shown = await made.testbed.ask("GET", f"/v1/deployments/{deployment}")
            if shown["status"] == "active":
                return
            assert shown["status"] != "failed", shown
            await asyncio.sleep(0.2)
