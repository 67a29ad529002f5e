"""Both actions against an installed service: deploy a small crew, run it, download its artifacts."""

import json
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.actions.acting import ActRepository, repository_with_crew
from tests.actions.runner import ActionRunner
from tests.actions.service import FakeService
from tests.e2e.demo import GIT_HOST
from tests.testbed.git_server import GitServer

URL, KEY = os.environ.get("CREWYARD_URL", ""), os.environ.get("CREWYARD_API_KEY", "")
pytestmark = pytest.mark.skipif(
    not URL or not KEY, reason="needs CREWYARD_URL and CREWYARD_API_KEY of an installed service"
)

MAIN = """
from pathlib import Path

from crewyard_runtime import emit


def kickoff(inputs):
    print("::error::said by the crew")
    emit("agent.started", agent="writer", task="greet")
    Path("artifacts/deep").mkdir()
    Path("artifacts/deep/greeting.txt").write_text(f"hello, {inputs['name']}")
    if inputs["name"] == "missing":
        raise ValueError("the name is missing")
    return {"greeting": f"hello, {inputs['name']}"}
"""
CONFIGURATION = '[deployment]\nframework = "python"\nentrypoint = "main:kickoff"\n'


@asynccontextmanager
async def created_project(**spec: Any) -> AsyncIterator[str]:
    """Yield a new project, deleted at the end."""
    name = f"action-{secrets.token_hex(4)}"
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session:
        async with session.post(f"{URL}/v1/projects", json={"name": name, **spec}) as response:
            assert response.status == 201, await response.text()
        try:
            yield name
        finally:
            async with session.delete(f"{URL}/v1/projects/{name}") as response:
                assert response.status == 204, await response.text()


@pytest_asyncio.fixture
async def project() -> AsyncIterator[str]:
    async with created_project() as name:
        yield name


async def test_a_commit_is_deployed_and_run(tmp_path, project):
    """Slow: a whole build and two runs by the actions."""
    (tmp_path / "workspace").mkdir()
    runner = ActionRunner(tmp_path, FakeService(), URL)
    sha = runner.commit({"crew.toml": CONFIGURATION, "main.py": MAIN}, "Greet")
    who = {"project": project, "api_key": KEY}

    done = await runner.done(await runner.start("deploy", **who), 400)
    assert done.code == 0, done.log
    assert done.outputs["status"] == "active" and KEY not in done.log.replace(f"add-mask::{KEY}", "")
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session,
        session.get(f"{URL}/v1/deployments/{done.outputs['deployment-id']}") as response,
    ):
        found = (await response.json())["data"]
    assert (found["git_sha"], found["message"], found["status"]) == (sha, "Greet", "active")
    assert done.outputs["url"] == f"{URL}/console/#/deployments/{found['id']}"

    inputs = {**who, "input": json.dumps({"name": "harbour"}), "artifacts_directory": "out"}
    done = await runner.done(await runner.start("run", **inputs), 900)
    assert done.code == 0, done.log
    assert json.loads(done.outputs["output"]) == {"greeting": "hello, harbour"}
    assert (runner.workspace / "out/deep/greeting.txt").read_text() == "hello, harbour"
    assert "agent writer: started: greet\n" in done.log and done.errors() == []

    done = await runner.done(await runner.start("run", **{**inputs, "input": '{"name": "missing"}'}), 900)
    assert done.code == 1 and done.outputs["status"] == "failed"
    assert "title=CrewError" in done.errors()[0] and "the name is missing" in done.errors()[0]

    runner.commit({"crew.toml": CONFIGURATION + 'python = "2.7"\n'}, "Go back in time")
    done = await runner.done(await runner.start("deploy", **who), 400)
    assert done.code == 1 and done.outputs["status"] == "failed"
    assert "::error file=crew.toml,line=4,title=ConfigInvalid::" in done.errors()[0]


async def test_a_workflow_deploys_and_runs_a_crew(tmp_path, project):
    """Slow: act starts containers for a whole workflow, with a build and a run."""
    repository_with_crew(tmp_path)
    act = ActRepository(tmp_path, {"CREWYARD_URL": URL, "CREWYARD_API_KEY": KEY, "CREWYARD_PROJECT": project})
    code, log = await act.run("both.yml", 400)
    assert code == 0, log
    assert "status=active" in log and 'hello, $(id) `id`; \'"quoted"' in log
    assert KEY not in log


async def test_a_followed_repository_gets_one_deployment_of_the_commit(tmp_path):
    (tmp_path / "workspace").mkdir()
    runner = ActionRunner(tmp_path, FakeService(), URL)
    files = {"crew.toml": CONFIGURATION, "main.py": MAIN}
    runner.commit(files, "Greet")
    with GitServer(tmp_path / "git", os.environ.get("CREWYARD_HOST_ADDRESS", "127.0.0.1")) as server:
        server.create("crew")
        runner.git("push", "-q", str(tmp_path / "git/crew.git"), "main")
        git = {"url": server.url("crew", host=GIT_HOST), "ref": {"branch": "main"}, "interval": "1s"}
        async with created_project(source={"git": git}) as project:
            done = await runner.done(await runner.start("deploy", project=project, api_key=KEY), 400)
            assert done.code == 0, done.log
            assert "without an upload" in done.log and done.outputs["status"] == "active"
            async with (
                aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session,
                session.get(f"{URL}/v1/deployments?project={project}") as response,
            ):
                listed = (await response.json())["data"]
    assert [item["id"] for item in listed] == [done.outputs["deployment-id"]]
