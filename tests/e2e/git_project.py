"""A project that follows a git repository. Called by the fixture `git_project`."""

from dataclasses import dataclass
from typing import Any

from tests.e2e.testbed import E2eTestbed, eventually
from tests.e2e.upload_project import BUILD_SECONDS
from tests.testbed.git_server import Repository


@dataclass
class GitProject:
    """A project with its repository."""

    testbed: E2eTestbed
    project: str
    repository: Repository
    url: str

    async def follow(self, branch: str = "main", **more: Any) -> None:
        """Make the project follow its repository; `more` goes to source.git."""
        git = {"url": self.url, "ref": {"branch": branch}, "interval": "1s", **more}
        await self.testbed.apply("Project", self.project, {"plan": "pro", "source": {"git": git}})

    async def ready_condition(self) -> dict[str, Any]:
        """The project's Ready condition."""
        found = await self.testbed.object("projects", self.project)
        conditions = found["status"]["conditions"]
        return next(condition for condition in conditions if condition["type"] == "Ready")

    async def deployment(self, sha: str, seconds: float = 300) -> dict[str, Any]:
        """The Deployment object made from a commit, as soon as there is one."""

        async def look() -> dict[str, Any] | None:
            listed = await self.testbed.get("/v1/deployments", project=self.project)
            for item in listed:
                found: dict[str, Any] = await self.testbed.object(
                    "deployments", item["id"].replace("_", "-", 1)
                )
                if found["spec"].get("gitSha") == sha:
                    return found
            return None

        made: dict[str, Any] = await eventually(look, lambda seen: seen is not None, seconds)
        return made

    async def wait_finished(self, sha: str, seconds: float = BUILD_SECONDS) -> dict[str, Any]:
        """The same, once its build has ended."""
        name = (await self.deployment(sha))["metadata"]["name"]
        done: dict[str, Any] = await eventually(
            lambda: self.testbed.object("deployments", name),
            lambda seen: seen["status"]["phase"] in ("Active", "Failed", "Superseded"),
            seconds,
        )
        return done
