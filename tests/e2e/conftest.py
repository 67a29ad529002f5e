"""What the end-to-end tests share: the yard, a git server, and one built crew with many entrypoints."""

import io
import os
import secrets
import tarfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.demo import GIT_HOST
from tests.e2e.yard import Yard, eventually
from tests.gitserver import GitServer, Repository

CREW = Path(__file__).parent / "crew"


def pytest_collection_modifyitems(items):
    """All of them share one event loop, since they share connections."""
    for item in items:
        if Path(__file__).parent in Path(item.path).parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def yard() -> AsyncIterator[Yard]:
    found = await Yard.open()
    yield found
    await found.close()


@pytest.fixture(scope="session")
def git_root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("git")


@pytest.fixture(scope="session")
def git_server(git_root) -> Iterator[GitServer]:
    with GitServer(git_root, os.environ.get("CREWYARD_HOST_ADDRESS", "127.0.0.1")) as server:
        yield server


@dataclass
class Team:
    """A project with its repository."""

    yard: Yard
    project: str
    repository: Repository
    url: str

    async def follow(self, branch: str = "main") -> None:
        """Makes the project follow its repository."""
        git = {"url": self.url, "ref": {"branch": branch}, "interval": "1s"}
        await self.yard.apply("Project", self.project, {"plan": "pro", "source": {"git": git}})

    async def ready(self) -> dict:
        """The project's Ready condition."""
        found = await self.yard.object("projects", self.project)
        return next(c for c in found["status"]["conditions"] if c["type"] == "Ready")

    async def deployment(self, sha: str, seconds: float = 60) -> dict:
        """The Deployment object made from a commit, as soon as there is one."""

        async def look():
            listed = await self.yard.get("/v1/deployments", project=self.project)
            for item in listed:
                found = await self.yard.object("deployments", item["id"].replace("_", "-", 1))
                if found["spec"]["gitSha"] == sha:
                    return found
            return None

        return await eventually(look, lambda seen: seen is not None, seconds)

    async def ended(self, sha: str, seconds: float = 300) -> dict:
        """The same, once its build has ended."""
        name = (await self.deployment(sha))["metadata"]["name"]
        return await eventually(
            lambda: self.yard.object("deployments", name),
            lambda seen: seen["status"]["phase"] in ("Active", "Failed", "Superseded"),
            seconds,
        )


@pytest_asyncio.fixture(loop_scope="session")
async def team(yard, git_server) -> AsyncIterator[Team]:
    """A new project's name and repository; whatever was made of it is deleted at the end."""
    name = f"e2e-{secrets.token_hex(4)}"
    yield Team(yard, name, git_server.create(name), git_server.url(name, host=GIT_HOST))
    await yard.kubectl("delete", "cproj", name, "--ignore-not-found", "--wait=false")


def archive(files: dict[str, bytes]) -> bytes:
    """A .tar.gz of some files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


async def upload(yard: Yard, project: str, content: bytes) -> str:
    """Uploads an archive; gives the build_context_url."""
    ticket = await yard.post("/v1/uploads", {"project": project, "size": len(content)})
    answer = await yard.call(
        ticket["method"], ticket["upload_url"], data=content, key="", headers=ticket["headers"]
    )
    assert answer.status in (200, 201, 204), answer.body
    return ticket["build_context_url"]


@dataclass
class Crew:
    """A built crew: main.py of tests/e2e/crew, whose functions end in all the ways there are."""

    yard: Yard
    project: str
    deployment: str

    async def run(self, entrypoint: str, seconds: float = 90, **more) -> dict:
        """Starts a function of main.py through the API and gives the finished run."""
        body = {"deployment": self.project, "entrypoint": f"main:{entrypoint}", **more}
        return await self.finished((await self.yard.post("/v1/runs", body))["id"], seconds)

    async def finished(self, run: str, seconds: float = 90) -> dict:
        """The run, once it has ended."""

        async def look() -> dict | None:
            answer = await self.yard.call("GET", f"/v1/runs/{run}")
            return None if answer.status == 404 else answer.data

        return await eventually(
            look, lambda seen: seen is not None and seen["completed_at"] is not None, seconds, pause=0.2
        )


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def crew(yard) -> AsyncIterator[Crew]:
    """The crew of tests/e2e/crew, uploaded and built once."""
    project = f"e2e-crew-{secrets.token_hex(4)}"
    await yard.post("/v1/projects", {"name": project, "plan": "pro"})
    content = archive({path.name: path.read_bytes() for path in sorted(CREW.iterdir()) if path.is_file()})
    made = await yard.post(
        "/v1/deployments",
        {
            "project": project,
            "build_context_url": await upload(yard, project, content),
            "message": "Every ending",
        },
    )
    done = await eventually(
        lambda: yard.get(f"/v1/deployments/{made['id']}"),
        lambda seen: seen["status"] not in ("pending", "building"),
        300,
        pause=0.5,
    )
    assert done["status"] == "active", done
    yield Crew(yard, project, made["id"])
    await yard.kubectl("delete", "cproj", project, "--ignore-not-found", "--wait=false")
