"""Changes of a branch: forced, rewritten, removed, created late, replaced by a tag; suspend and request."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crds import kinds
from crds.objects import Deployment
from kube.client import KubeClient
from tests.cluster.controller.conftest import WAIT_SECONDS, ControllerTestbed, condition, controller, settings
from tests.testbed.git_server import GitServer


@pytest.fixture
async def testbed(kube: KubeClient, tmp_path: Path) -> AsyncIterator["FollowingProjectTestbed"]:
    config = settings(kube.namespace)
    with GitServer(tmp_path) as server:
        async with controller(kube, config) as process:
            yield FollowingProjectTestbed(ControllerTestbed(kube, config, process), server)


class FollowingProjectTestbed:
    """The project demo, which follows a git repository."""

    def __init__(self, controller: ControllerTestbed, server: GitServer) -> None:
        self.controller, self.server, self.repository = controller, server, server.create("crew")

    async def create_project(self, name: str = "demo", **git) -> None:
        await self.controller.project(name, source={"git": {"url": self.server.url("crew"), **git}})

    async def patch_source(self, **git) -> None:
        await self.controller.kube.patch(kinds.PROJECT, "demo", {"spec": {"source": {"git": git}}})

    async def wait_ready(self, status: str, reason: str) -> str:
        found = await self.controller.until(
            kinds.PROJECT, "demo", lambda o: condition(o, "Ready") == (status, reason)
        )
        return next(c["message"] for c in found["status"]["conditions"] if c["type"] == "Ready")

    async def deployments(self, project: str = "demo") -> list[Deployment]:
        listing = await self.controller.kube.list(kinds.DEPLOYMENT, fields=f"spec.project={project}")
        return [Deployment(item) for item in listing.items]

    async def wait_deployed(self, sha: str, project: str = "demo") -> Deployment:
        """Return the Deployment of a commit once it has its order."""
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                for deployment in await self.deployments(project):
                    if deployment.spec.get("gitSha") == sha and deployment.order:
                        return deployment
                await asyncio.sleep(0.05)

    async def build_and_activate(self, sha: str) -> str:
        """Finish the build of a commit's Deployment; return its name once it is active."""
        name = (await self.wait_deployed(sha)).name
        await self.controller.until(kinds.DEPLOYMENT, name, lambda o: o["status"].get("sourceKey"))
        await self.controller.mark_built(name)
        await self.controller.wait_active(name)
        return name

    async def wait_observed(self, sha: str, project: str = "demo") -> None:
        await self.controller.until(
            kinds.PROJECT, project, lambda o: o["status"].get("source", {}).get("commit") == sha
        )


async def test_branch_forced_back_removed_or_rewritten(testbed):
    """Slow: a poll and a deployment for each change of the branch."""
    repository, deployments = testbed.repository, testbed.deployments
    await testbed.create_project(ref={"branch": "main"})
    # An empty repository: the first push fixes it.
    assert "push one" in await testbed.wait_ready("False", "EmptyRepository")
    first = repository.commit({"main.py": "1"}, "One")
    one = await testbed.build_and_activate(first)
    second = repository.commit({"main.py": "2"}, "Two")
    two = await testbed.build_and_activate(second)
    # Forced back: the existing build becomes active without another Deployment.
    repository.reset(first)
    await testbed.controller.wait_active(one)
    assert len(await deployments()) == 2
    # Removed: the condition reports it and the active deployment stays.
    repository._git("branch", "keep", "main")
    repository._git("update-ref", "-d", "refs/heads/main")
    assert "branches: keep" in await testbed.wait_ready("False", "BranchNotFound")
    project = await testbed.controller.kube.get(kinds.PROJECT, "demo")
    assert project["status"]["activeDeployment"] == one
    # Rewritten: the same branch with an unrelated history.
    tree = repository._git("rev-parse", f"{second}^{{tree}}")
    rewritten = repository._git("commit-tree", tree, "-m", "Rewritten")
    repository.reset(rewritten)
    assert rewritten in await testbed.wait_ready("True", "Resolved")
    three = await testbed.wait_deployed(rewritten)
    assert three.name not in (one, two)


async def test_switch_between_branch_and_tag_and_moved_tag(testbed):
    """Slow: five polls of a repository, each followed by a Deployment or a condition."""
    repository = testbed.repository
    first = repository.commit({"main.py": "1"}, "One")
    repository._git("tag", "-a", "-m", "Release", "v1", first)
    second = repository.commit({"main.py": "2"}, "Two")
    await testbed.create_project(ref={"branch": "main"})
    await testbed.build_and_activate(second)
    await testbed.patch_source(ref={"branch": None, "tag": "v1"})
    await testbed.build_and_activate(first)
    assert "refs/tags/v1" in await testbed.wait_ready("True", "Resolved")
    repository._git("tag", "-f", "v1", second)
    await testbed.wait_observed(second)
    await testbed.patch_source(ref={"branch": "gone", "tag": None})
    await testbed.wait_ready("False", "BranchNotFound")
    await testbed.patch_source(ref={"branch": "main"})
    await testbed.wait_ready("True", "Resolved")


async def test_suspend_stops_polling_and_request_polls_now(testbed):
    repository = testbed.repository
    first = repository.commit({"main.py": "1"}, "One")
    await testbed.create_project(interval="1h")
    await testbed.wait_deployed(first)
    await testbed.patch_source(suspend=True)
    await testbed.wait_ready("True", "Suspended")
    second = repository.commit({"main.py": "2"}, "Two")
    request = {"metadata": {"annotations": {"crewyard.dev/requestedAt": "2999-01-01T00:00:00Z"}}}
    await testbed.controller.kube.patch(kinds.PROJECT, "demo", request)
    await testbed.controller.settle()
    assert len(await testbed.deployments()) == 1
    await testbed.patch_source(suspend=False)
    await testbed.wait_deployed(second)
    third = repository.commit({"main.py": "3"}, "Three")
    request["metadata"]["annotations"]["crewyard.dev/requestedAt"] = "2999-01-01T00:00:01Z"
    await testbed.controller.kube.patch(kinds.PROJECT, "demo", request)
    await testbed.wait_deployed(third)


async def test_crews_of_one_repository_deploy_independently(testbed):
    repository, files = testbed.repository, {"a/main.py": "1", "b/main.py": "1"}
    first = repository.commit(files, "One")
    for name in "ab":
        await testbed.create_project(name, path=name)
    for name in "ab":
        await testbed.wait_deployed(first, name)
    second = repository.commit({**files, "b/main.py": "2"}, "Only b")
    await testbed.wait_deployed(second, "b")
    await testbed.wait_observed(second, "a")
    assert [d.spec["gitSha"] for d in await testbed.deployments("a")] == [first]


async def test_revert_reuses_the_image_of_the_same_tree(testbed):
    repository = testbed.repository
    first = repository.commit({"main.py": "1"}, "One")
    await testbed.create_project()
    one = await testbed.build_and_activate(first)
    second = repository.commit({"main.py": "2"}, "Two")
    await testbed.build_and_activate(second)
    reverted = repository.commit({"main.py": "1"}, "Revert Two")
    made = await testbed.wait_deployed(reverted)
    await testbed.controller.wait_active(made.name)
    found = await testbed.controller.kube.get(kinds.DEPLOYMENT, made.name)
    assert condition(found, "Built") == ("True", "Reused")
    assert "buildPod" not in found["status"]
    image = (await testbed.controller.kube.get(kinds.DEPLOYMENT, one))["status"]["image"]
    assert found["status"]["image"] == image
