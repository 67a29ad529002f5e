"""What can happen to a head: forced, rewritten, removed, born late, exchanged for a tag; suspended, asked."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crds import kinds
from crds.objects import Deployment
from kube.client import KubeClient
from tests.cluster.controller.conftest import ControllerTestbed, condition, controller, settings
from tests.testbed.git_server import GitServer


@pytest.fixture
async def follower(kube: KubeClient, tmp_path: Path) -> AsyncIterator["Follower"]:
    config = settings(kube.namespace)
    with GitServer(tmp_path) as server:
        async with controller(kube, config) as process:
            yield Follower(ControllerTestbed(kube, config, process), server)


class Follower:
    """The project demo, which follows a repository."""

    def __init__(self, testbed: ControllerTestbed, server: GitServer) -> None:
        self.testbed, self.server, self.repository = testbed, server, server.create("crew")

    async def follow(self, name: str = "demo", **git) -> None:
        await self.testbed.project(name, source={"git": {"url": self.server.url("crew"), **git}})

    async def source(self, **git) -> None:
        await self.testbed.kube.patch(kinds.PROJECT, "demo", {"spec": {"source": {"git": git}}})

    async def ready(self, status: str, reason: str) -> str:
        found = await self.testbed.until(
            kinds.PROJECT, "demo", lambda o: condition(o, "Ready") == (status, reason)
        )
        return next(c["message"] for c in found["status"]["conditions"] if c["type"] == "Ready")

    async def all(self, project: str = "demo") -> list[Deployment]:
        listing = await self.testbed.kube.list(kinds.DEPLOYMENT, fields=f"spec.project={project}")
        return [Deployment(item) for item in listing.items]

    async def deployed(self, sha: str, project: str = "demo") -> Deployment:
        """The Deployment of a commit, once it has its order."""
        async with asyncio.timeout(90):
            while True:
                for deployment in await self.all(project):
                    if deployment.spec.get("gitSha") == sha and deployment.order:
                        return deployment
                await asyncio.sleep(0.05)

    async def active(self, sha: str) -> str:
        """Plays the build of a commit's Deployment; its name."""
        name = (await self.deployed(sha)).name
        await self.testbed.until(kinds.DEPLOYMENT, name, lambda o: o["status"].get("sourceKey"))
        await self.testbed.built(name)
        await self.testbed.active(name)
        return name

    async def acted_upon(self, sha: str, project: str = "demo") -> None:
        await self.testbed.until(
            kinds.PROJECT, project, lambda o: o["status"].get("source", {}).get("commit") == sha
        )


async def test_branch_forced_back_removed_or_rewritten(follower):
    repository, all_of = follower.repository, follower.all
    await follower.follow(ref={"branch": "main"})
    # Empty: the first push cures it.
    assert "push one" in await follower.ready("False", "EmptyRepository")
    first = repository.commit({"main.py": "1"}, "One")
    one = await follower.active(first)
    second = repository.commit({"main.py": "2"}, "Two")
    two = await follower.active(second)
    # Forced back: what is built already is active at once, without another Deployment.
    repository.reset(first)
    await follower.testbed.active(one)
    assert len(await all_of()) == 2
    # Removed: it says so, and what is active stays.
    repository._git("branch", "keep", "main")
    repository._git("update-ref", "-d", "refs/heads/main")
    assert "branches: keep" in await follower.ready("False", "BranchNotFound")
    project = await follower.testbed.kube.get(kinds.PROJECT, "demo")
    assert project["status"]["activeDeployment"] == one
    # Rewritten: the same name with a history that has nothing of the old one.
    tree = repository._git("rev-parse", f"{second}^{{tree}}")
    rewritten = repository._git("commit-tree", tree, "-m", "Rewritten")
    repository.reset(rewritten)
    assert rewritten in await follower.ready("True", "Resolved")
    three = await follower.deployed(rewritten)
    assert three.name not in (one, two)


async def test_switch_between_branch_and_tag_and_moved_tag(follower):
    repository = follower.repository
    first = repository.commit({"main.py": "1"}, "One")
    repository._git("tag", "-a", "-m", "Release", "v1", first)
    second = repository.commit({"main.py": "2"}, "Two")
    await follower.follow(ref={"branch": "main"})
    await follower.active(second)
    await follower.source(ref={"branch": None, "tag": "v1"})
    await follower.active(first)
    assert "refs/tags/v1" in await follower.ready("True", "Resolved")
    repository._git("tag", "-f", "v1", second)
    await follower.acted_upon(second)
    await follower.source(ref={"branch": "gone", "tag": None})
    await follower.ready("False", "BranchNotFound")
    await follower.source(ref={"branch": "main"})
    await follower.ready("True", "Resolved")


async def test_suspend_stops_polling_and_request_polls_now(follower):
    repository = follower.repository
    first = repository.commit({"main.py": "1"}, "One")
    await follower.follow(interval="1h")
    await follower.deployed(first)
    await follower.source(suspend=True)
    await follower.ready("True", "Suspended")
    second = repository.commit({"main.py": "2"}, "Two")
    asked = {"metadata": {"annotations": {"crewyard.dev/requestedAt": "2999-01-01T00:00:00Z"}}}
    await follower.testbed.kube.patch(kinds.PROJECT, "demo", asked)
    await asyncio.sleep(1.2)
    assert len(await follower.all()) == 1
    await follower.source(suspend=False)
    await follower.deployed(second)
    third = repository.commit({"main.py": "3"}, "Three")
    asked["metadata"]["annotations"]["crewyard.dev/requestedAt"] = "2999-01-01T00:00:01Z"
    await follower.testbed.kube.patch(kinds.PROJECT, "demo", asked)
    await follower.deployed(third)


async def test_crews_of_one_repository_deploy_independently(follower):
    repository, files = follower.repository, {"a/main.py": "1", "b/main.py": "1"}
    first = repository.commit(files, "One")
    for name in "ab":
        await follower.follow(name, path=name)
    for name in "ab":
        await follower.deployed(first, name)
    second = repository.commit({**files, "b/main.py": "2"}, "Only b")
    await follower.deployed(second, "b")
    await follower.acted_upon(second, "a")
    assert [d.spec["gitSha"] for d in await follower.all("a")] == [first]


async def test_revert_reuses_the_image_of_the_same_tree(follower):
    repository = follower.repository
    first = repository.commit({"main.py": "1"}, "One")
    await follower.follow()
    one = await follower.active(first)
    second = repository.commit({"main.py": "2"}, "Two")
    await follower.active(second)
    reverted = repository.commit({"main.py": "1"}, "Revert Two")
    made = await follower.deployed(reverted)
    await follower.testbed.active(made.name)
    found = await follower.testbed.kube.get(kinds.DEPLOYMENT, made.name)
    assert condition(found, "Built") == ("True", "Reused")
    assert "buildPod" not in found["status"]
    image = (await follower.testbed.kube.get(kinds.DEPLOYMENT, one))["status"]["image"]
    assert found["status"]["image"] == image
