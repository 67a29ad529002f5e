"""Git outages: reported in conditions; old deployments stay active; other projects do not wait."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from tests.campaign.outages.network.link import Link, open_link
from tests.campaign.outages.network.rule import (
    DOWN,
    CutAfterBytes,
    FixedResponse,
    GarbageBytes,
    LinkConnection,
    SilentLink,
    SlowLink,
)
from tests.campaign.outages.outage import Outage, outage
from tests.campaign.outages.remotes import GitFollowingProject
from tests.campaign.reports.report import require_good
from tests.campaign.testbed import CampaignTestbed, open_testbed
from tests.testbed.git_server import GitServer

CONCURRENCY = 4
ACTIVE = "active"


def pack(line: LinkConnection) -> bool:
    """The request for a commit, after the list of heads was given."""
    return line.method == "POST"


def faults(link: Link):
    """Each with the reasons of which the project says one."""
    away = ("Unreachable",)
    closed = 'WWW-Authenticate: Basic realm="git"\r\n'
    return {
        "git remote refuses": (link.refusing(), away),
        "git remote cut in the list": (link.fault(CutAfterBytes(DOWN, 200)), away),
        "git remote answers garbage": (link.fault(GarbageBytes()), (*away, "GitNotFound")),
        "git remote answers 503": (link.fault(FixedResponse(503, "later")), away),
        "git remote answers 401": (link.fault(FixedResponse(401, "no", closed)), ("GitAuthFailed",)),
        "git remote answers 401 midway": (
            link.fault(FixedResponse(401, "no", closed, pack)),
            ("GitAuthFailed",),
        ),
        "git remote cut in the pack": (link.fault(CutAfterBytes(DOWN, 60, pack)), away),
        "git remote silent": (link.fault(SilentLink()), away),
        "git remote silent after the list": (link.fault(SilentLink(pack)), away),
    }


async def struck(
    found: Outage,
    kind: str,
    fault,
    reasons,
    hurt: GitFollowingProject,
    other: GitFollowingProject,
    variant: str,
):
    """One fault; a commit on either side of it."""
    before = await hurt.active_commit()
    shas: list[str] = []

    async def during() -> None:
        shas.extend((await hurt.commit(variant), await other.commit(variant)))
        await asyncio.gather(hurt.request_poll(), other.request_poll())
        message = await hurt.wait_reason(*reasons)
        if len(message) < 20:
            found.add_violation("answers", f"{kind}: the project just says {message!r}")
        # The neighbour's commit comes through meanwhile.
        await other.wait_active(shas[1])
        if await hurt.active_commit() != before:
            found.add_violation(ACTIVE, f"{kind}: the previous deployment did not stay active")

    await found.inject(kind, fault, 0, during)
    # No poll is requested: the interval finds it.
    await hurt.wait_active(shas[0])


@contextlib.asynccontextmanager
async def followed(place: Path, testbed: CampaignTestbed):
    """A link before a git server, a project behind the link, and one beside it; both active once."""
    (place / "git").mkdir()
    with GitServer(place / "git", testbed.host) as server:
        async with open_link(testbed.host, server.port, testbed.host) as link:
            names = ("hurt", "other")
            repositories = [server.create(name) for name in names]
            urls = (f"http://{testbed.host}:{link.port}/hurt.git", server.url("other"))
            both = [
                GitFollowingProject(testbed, name, repository, url)
                for name, repository, url in zip(names, repositories, urls, strict=True)
            ]
            # Each variant counts as built, to activate a commit of it immediately.
            for variant in ("ebb", "flood"):
                shas = [await one.commit(variant) for one in both]
                await asyncio.gather(
                    *(one.create("5s") if variant == "ebb" else one.request_poll() for one in both)
                )
                for one, sha in zip(both, shas, strict=True):
                    await one.play(sha)
                    await one.wait_active(sha)
            yield link, *both


@pytest.mark.campaign
async def test_every_git_remote_fault(place):
    name = "test_every_git_remote_fault"
    async with (
        open_testbed(place, concurrency=CONCURRENCY) as testbed,
        outage(name, testbed, CONCURRENCY) as found,
        followed(place, testbed) as (link, hurt, other),
    ):
        await found.store_artifact(1000)
        for number, (kind, (fault, reasons)) in enumerate(faults(link).items()):
            run = await found.campaign.work.post({"events": 5, "pause": 0.5, "artifact": 1000})
            variant = ("ebb", "flood")[number % 2]
            await struck(found, kind, fault, reasons, hurt, other, variant)
            await found.wait_ended(run)
        await slow(found, link, hurt)
    require_good(found.campaign.report)


@pytest.mark.campaign
async def test_git_remote_fails_during_a_build(place):
    async with (
        open_testbed(place, concurrency=CONCURRENCY) as testbed,
        outage("test_git_remote_fails_during_a_build", testbed, CONCURRENCY) as found,
        followed(place, testbed) as (link, hurt, _),
    ):
        await found.store_artifact(1000)
        await at_the_build(found, link, hurt)
    require_good(found.campaign.report)


async def slow(found: Outage, link: Link, hurt: GitFollowingProject) -> None:
    """A slow remote is waited for."""
    sha = await hurt.commit("flood")

    async def during() -> None:
        await hurt.request_poll()
        await hurt.wait_active(sha)

    await found.inject("git remote slow", link.fault(SlowLink(0.5, 2000)), 0, during)


async def at_the_build(found: Outage, link: Link, hurt: GitFollowingProject) -> None:
    """The remote answers the controller, and not the pod that fetches what is to be built."""

    def pods(line: LinkConnection) -> bool:
        return line.peer != found.testbed.host

    # Away for a while: another pod finds it again.
    sha = await hurt.commit("spring tide")
    cut = CutAfterBytes(DOWN, 0, pods)

    async def cut_once() -> None:
        await hurt.request_poll()
        async with asyncio.timeout(180):
            while not cut.injected:
                await asyncio.sleep(0.1)

    await found.inject("git remote away from a build", link.fault(cut), 3, cut_once)
    await hurt.wait_fetched(sha)
    await hurt.play(sha)
    await hurt.wait_active(sha)
    # Access denied: final, and reported.
    last = await hurt.commit("neap tide")
    closed = FixedResponse(401, "no", 'WWW-Authenticate: Basic realm="git"\r\n', pods)

    async def fails() -> None:
        await hurt.request_poll()
        status = await hurt.wait_finished(last, 300)
        error = status.get("error") or {}
        if status["phase"] != "Failed" or error.get("reason") != "GitAuthFailed":
            found.add_violation(
                "answers", f"a remote that is closed to the build: {status['phase']}, {error}"
            )

    await found.inject("git remote closed to a build", link.fault(closed), 0, fails)
    if await hurt.active_commit() != sha:
        found.add_violation(ACTIVE, "the previous deployment did not stay active when a build failed")
