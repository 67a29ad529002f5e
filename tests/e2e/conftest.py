"""What the end-to-end tests share: the test bed, a git server, and one built crew with many entrypoints."""

import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.demo import GIT_HOST
from tests.e2e.git_project import GitProject
from tests.e2e.registry import RegistryRepository
from tests.e2e.testbed import E2eTestbed, eventually
from tests.e2e.upload_project import UploadProject, archive, tree, upload
from tests.testbed.git_server import GitServer

__all__ = ["CREW", "BuiltCrew", "GitProject", "archive", "eventually", "upload"]

CREW = Path(__file__).parent / "crew"
LIMITS = {"memory": "256Mi", "ephemeral-storage": "256Mi"}
RUN_SECONDS = 600
"""Upper bound of a wait for a run, whose pod may need a minute to start."""


# These stop the service, make nodes or enemies of the node: not on a cluster that others use.
FAULTS = ("test_outage", "test_node_lost", "test_slow_failures", "test_hostile", "test_fences")


def pytest_collection_modifyitems(items):
    """All of them share one event loop, since they share connections."""
    others = os.environ.get("CREWYARD_CLUSTER") == "current"
    for item in items:
        if Path(__file__).parent not in Path(item.path).parents:
            continue
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
        if others and Path(item.path).stem in FAULTS:
            item.add_marker(pytest.mark.skip(reason="it breaks things; this cluster is not only ours"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def testbed() -> AsyncIterator[E2eTestbed]:
    found = await E2eTestbed.open()
    yield found
    await found.close()


@pytest.fixture(scope="session")
def git_root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("git")


@pytest.fixture(scope="session")
def host_address() -> str:
    """Where pods reach what a test serves."""
    return os.environ.get("CREWYARD_HOST_ADDRESS", "127.0.0.1")


@pytest.fixture(scope="session")
def git_server(git_root, host_address) -> Iterator[GitServer]:
    with GitServer(git_root, host_address) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def git_project(testbed, git_server) -> AsyncIterator[GitProject]:
    """A new project's name and repository; its objects are deleted at the end."""
    name = f"e2e-{secrets.token_hex(4)}"
    yield GitProject(testbed, name, git_server.create(name), git_server.url(name, host=GIT_HOST))
    await testbed.kubectl("delete", "cproj", name, "--ignore-not-found", "--wait=false")


Open = Callable[..., Awaitable[UploadProject]]


@pytest_asyncio.fixture(loop_scope="session")
async def upload_projects(testbed) -> AsyncIterator[Open]:
    """Make projects that are deployed by uploads: `await upload_projects(plan="free", build={…})`."""
    made = []

    async def open_one(**spec: Any) -> UploadProject:
        name = f"e2e-{secrets.token_hex(4)}"
        await testbed.post("/v1/projects", {"name": name, "plan": "pro", **spec})
        made.append(name)
        return UploadProject(testbed, name)

    yield open_one
    for name in made:
        await testbed.kubectl("delete", "cproj", name, "--ignore-not-found", "--wait=false")


@dataclass
class BuiltCrew:
    """A built crew: the modules of tests/e2e/crew, whose functions end in all the ways there are."""

    testbed: E2eTestbed
    project: str
    deployment: str

    @property
    def upload_project(self) -> UploadProject:
        """Where more is deployed to the same project."""
        return UploadProject(self.testbed, self.project)

    async def start(self, entrypoint: str, **more) -> str:
        """Start a function (of main.py where no module is named); return the run's id."""
        whole = entrypoint if ":" in entrypoint else f"main:{entrypoint}"
        body = {"deployment": self.deployment, "entrypoint": whole, **more}
        return (await self.testbed.post("/v1/runs", body))["id"]

    async def run(self, entrypoint: str, seconds: float = RUN_SECONDS, **more) -> dict:
        """Start a function through the API; return the finished run."""
        return await self.wait_finished(await self.start(entrypoint, **more), seconds)

    async def wait_for_log(self, run: str, line: str, seconds: float = RUN_SECONDS) -> None:
        """Wait until the crew has printed `line`."""
        async for message in self.testbed.stream(f"/v1/runs/{run}/events", seconds=seconds):
            if message.event == "log" and message.data["message"] == line:
                return
        raise AssertionError(f"{run} ended without printing {line!r}")

    async def wait_finished(self, run: str, seconds: float = RUN_SECONDS) -> dict:
        """The run, once it has ended."""

        async def look() -> dict | None:
            answer = await self.testbed.call("GET", f"/v1/runs/{run}")
            return None if answer.status == 404 else answer.data

        return await eventually(
            look, lambda seen: seen is not None and seen["completed_at"] is not None, seconds, pause=0.2
        )


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def crew(testbed) -> AsyncIterator[BuiltCrew]:
    """The crew of tests/e2e/crew, uploaded and built once; its limits are low, so that they are soon met."""
    project = f"e2e-crew-{secrets.token_hex(4)}"
    await testbed.post(
        "/v1/projects", {"name": project, "plan": "pro", "run": {"resources": {"limits": LIMITS}}}
    )
    made = BuiltCrew(
        testbed,
        project,
        await UploadProject(testbed, project).deploy_and_wait(tree(CREW), message="Every ending"),
    )
    yield made
    await testbed.kubectl("delete", "cproj", project, "--ignore-not-found", "--wait=false")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def unpullable(testbed, crew) -> tuple[str, str]:
    """A run that was just started although its image has left the registry; its id and the image."""
    files = {**tree(CREW), "note.txt": secrets.token_hex()}
    deployment = await crew.upload_project.deploy_and_wait(files, preview={})
    image = await crew.upload_project.image(deployment)
    await RegistryRepository.of(image).remove(image)
    return await BuiltCrew(testbed, crew.project, deployment).start("kickoff"), image


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def unpushable(testbed) -> AsyncIterator[tuple[UploadProject, str]]:
    """A deployment that was just created, of a project that cannot push to the registry."""
    repositories = Path(os.environ["CREWYARD_STATE"], "data/registry/docker/registry/v2/repositories/crews")
    if not repositories.is_dir():
        pytest.skip("the registry's files are not on this machine")
    project = f"e2e-{secrets.token_hex(4)}"
    obstacle = repositories / project
    obstacle.write_text("A file where the registry needs a directory.")
    await testbed.post("/v1/projects", {"name": project, "plan": "pro"})
    upload_project = UploadProject(testbed, project)
    yield upload_project, await upload_project.deploy({"main.py": "def kickoff(): ..."})
    obstacle.unlink()
    await testbed.kubectl("delete", "cproj", project, "--ignore-not-found", "--wait=false")
