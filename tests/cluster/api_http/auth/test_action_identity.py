"""The action `run` without an API key: it uses the workflow's OIDC identity."""

import asyncio
import time
from datetime import UTC, datetime

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from api.services import SERVICES
from crds import names
from crds.github import proven_commits
from crds.kinds import DEPLOYMENT, RUN
from crds.times import format_second
from tests.actions.acting import ActRepository, repository_with_crew
from tests.actions.runner import ActionRunner
from tests.actions.service import FakeService
from tests.unit.api.auth.issuer import Issuer, wait_patiently

REQUEST_TOKEN = "of-this-job"
AUDIENCE = "https://crewyard.example"
VALID_SECONDS = 6
"""A busy machine may take seconds between the issue of a token and its use."""


class JobRunner(Issuer):
    """An issuer that also serves tokens as GitHub runners do, each valid for some seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.issued: list[str] = []
        app = web.Application()
        app.router.add_get("/token", self._token)
        self.requests = TestServer(app)

    async def _token(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {REQUEST_TOKEN}":
            return web.Response(status=403)
        now = datetime.now(UTC)
        ends = int(time.time()) + VALID_SECONDS
        self.issued.append(self.token(now, aud=request.query["audience"], exp=ends))
        return web.json_response({"count": 1, "value": self.issued[-1]})


@pytest.fixture
async def issuer(monkeypatch):
    wait_patiently(monkeypatch)
    made = JobRunner()
    await made.start()
    await made.requests.start_server()
    yield made
    await made.requests.close()
    await made.server.close()


@pytest.fixture
def settings(issuer, monkeypatch):
    monkeypatch.setattr("api.auth.oidc.LEEWAY_SECONDS", 1.0)
    return {"CREWYARD_OIDC_ISSUER": issuer.url, "CREWYARD_OIDC_AUDIENCE": AUDIENCE}


async def create_active_deployment(testbed):
    """Create a project that allows the workflow to run, with an active deployment."""
    entries = [{"repository": "octo/tides", "ref": "refs/heads/main", "scopes": ["run"]}]
    await testbed.data("POST", "/v1/projects", {"name": "crew", "oidc": entries})
    await testbed.kube.create(
        DEPLOYMENT,
        {
            "metadata": {"name": "dep-a"},
            "spec": {"project": "crew", "source": {"archive": {"upload": "upl_a", "sha256": "0" * 64}}},
        },
    )
    await testbed.mark_built("crew", "dep-a")


async def end_started_run(testbed, issuer, tokens):
    """Act as the controller: end the started run once so many tokens were issued."""
    async with asyncio.timeout(180):
        while not (runs := (await testbed.call("GET", "/v1/runs"))[1]["data"]):
            await asyncio.sleep(0.05)
        name = runs[0]["id"].replace("_", "-", 1)
        # The API lists a run before it has created its object.
        while await testbed.kube.get(RUN, name) is None:
            await asyncio.sleep(0.05)
        while len(issuer.issued) < tokens:
            await asyncio.sleep(0.05)
        now = format_second(datetime.now(UTC))
        await testbed.patch_status(RUN, name, phase="Succeeded", project="crew", deployment="dep-a",
                          startTime=now, completionTime=now, durationMs=1)  # fmt: skip


def job_environment(issuer):
    return {
        "ACTIONS_ID_TOKEN_REQUEST_URL": str(issuer.requests.make_url("/token?v=1")),
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN,
    }


async def test_run_is_followed_beyond_token_expiry(testbed, issuer, tmp_path):
    await create_active_deployment(testbed)
    (tmp_path / "workspace").mkdir()
    runner = ActionRunner(tmp_path, FakeService(), str(testbed.client.make_url("")).rstrip("/"))
    runner.environment |= job_environment(issuer)
    inputs = {"project": "crew", "api_key": "", "oidc_audience": AUDIENCE, "input": "{}"}
    process = await runner.start("run", **inputs)
    await end_started_run(testbed, issuer, 2)
    done = await runner.done(process)
    assert done.code == 0, done.log
    assert done.outputs["status"] == "succeeded"
    assert len(issuer.issued) >= 2
    assert all(f"::add-mask::{token}" in done.commands for token in issuer.issued)


async def test_workflow_in_act_runs_without_a_key(testbed, issuer, tmp_path):
    await create_active_deployment(testbed)
    repository_with_crew(tmp_path)
    url = str(testbed.client.make_url("")).rstrip("/")
    repository = ActRepository(
        tmp_path, {"CREWYARD_URL": url, "CREWYARD_PROJECT": "crew", "CREWYARD_AUDIENCE": AUDIENCE}
    )
    (code, log), _ = await asyncio.gather(
        repository.run("keyless.yml", variables=job_environment(issuer)), end_started_run(testbed, issuer, 1)
    )
    assert code == 0, log
    assert "status=succeeded" in log
    assert issuer.issued
    assert not any(token in log for token in issuer.issued)


async def test_workflow_without_oidc_entry_is_refused(testbed, issuer, tmp_path):
    await testbed.data("POST", "/v1/projects", {"name": "crew"})
    (tmp_path / "workspace").mkdir()
    runner = ActionRunner(tmp_path, FakeService(), str(testbed.client.make_url("")).rstrip("/"))
    runner.environment |= job_environment(issuer)
    done = await runner.run(project="crew", api_key="", oidc_audience=AUDIENCE, input="{}")
    assert done.code == 1
    (line,) = done.errors()
    assert "401" in line and "oidc name this repository" in line


@pytest.mark.parametrize("sha", ["a" * 40, "b" * 40])
async def test_only_the_commit_of_the_workflow_is_proven(testbed, issuer, sha):
    entries = [{"repository": "octo/tides", "scopes": ["deploy"]}]
    await testbed.data("POST", "/v1/projects", {"name": "crew", "oidc": entries})
    claims = {"aud": AUDIENCE, "sha": "a" * 40, "repository_id": "42"}
    headers = {"Authorization": f"Bearer {issuer.token(datetime.now(UTC), **claims)}"}
    ticket = await testbed.data("POST", "/v1/uploads", {"project": "crew", "size": 5}, headers=headers)
    path = ticket["upload_url"].removeprefix("http://crewyard.example")
    async with testbed.client.put(path, data=b"bytes", headers=ticket["headers"]) as answer:
        assert answer.status == 200
    body = {"project": "crew", "build_context_url": ticket["build_context_url"], "git_sha": sha}
    made = await testbed.data("POST", "/v1/deployments", body, headers=headers)
    stored = await testbed.kube.get(DEPLOYMENT, names.name_of(made["id"]))
    given = stored["metadata"]["annotations"].get(names.ANNOTATION_PROVEN_COMMIT, "")
    key = testbed.client.server.app[SERVICES].config.token_key
    assert proven_commits.is_proven((key,), stored["spec"], "Octo/Tides", sha, given) is (sha == "a" * 40)
