"""Commit statuses: real controller and apiserver, and an HTTP server that checks each request."""

import asyncio
import base64
import json
import time
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from controller.commit_status import reconcile
from controller.commit_status import request as request_module
from controller.runtime import event_map
from crds import kinds
from crds.names import ANNOTATION_COMMIT_STATUS
from tests.cluster.controller.conftest import WAIT_SECONDS, ControllerTestbed, controller, settings

SHA = "a" * 40
TOKEN = "a token for tests only"
COMMIT = {"git": {"url": "https://git.example.com/team/crew.git", "commit": SHA}}
PATHS = {
    "gitlab": f"/api/v4/projects/team%2Fsub%2Fcrew/statuses/{SHA}",
    "gitea": f"/api/v1/repos/team/crew/statuses/{SHA}",
}
REPOSITORIES = {"gitlab": "team/sub/crew", "gitea": "team/crew"}
TOKEN_HEADERS = {"gitlab": ("PRIVATE-TOKEN", TOKEN), "gitea": ("Authorization", f"token {TOKEN}")}
STATES = {
    "gitlab": {"pending", "running", "success", "failed", "canceled", "skipped"},
    "gitea": {"pending", "success", "error", "failure", "warning"},
}


class StatusServer:
    """The documented endpoint of one provider; `failures` are the statuses of the next responses."""

    def __init__(self, provider):
        self.provider, self.url = provider, ""
        self.accepted, self.failures, self.wrong = [], [], []

    async def handle(self, request):
        header, value = TOKEN_HEADERS[self.provider]
        if self.failures:
            return web.json_response({"message": "no"}, status=self.failures.pop(0))
        if request.headers.get(header) != value:
            return web.json_response({"message": "401 Unauthorized"}, status=401)
        if (request.method, request.raw_path) != ("POST", PATHS[self.provider]):
            self.wrong.append((request.method, request.raw_path))
            return web.json_response({"message": "404 Not Found"}, status=404)
        body = json.loads(await request.read())
        if request.content_type != "application/json" or body["state"] not in STATES[self.provider]:
            self.wrong.append(body)
            return web.json_response({"message": "400 Bad Request"}, status=400)
        self.accepted.append(body)
        return web.json_response({"id": len(self.accepted), **body}, status=201)


@asynccontextmanager
async def status_server(provider):
    found = StatusServer(provider)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", found.handle)
    async with TestServer(app) as server:
        found.url = str(server.make_url("")).rstrip("/")
        yield found


@pytest.fixture(params=["gitlab", "gitea"])
async def host(request):
    async with status_server(request.param) as found:
        yield found


@pytest.fixture
async def testbed(kube, host, monkeypatch):
    monkeypatch.setattr(reconcile, "REFUSED_RETRY_SECONDS", 0.3)
    monkeypatch.setattr(reconcile, "BACKOFF_FACTOR", 0.5)
    monkeypatch.setattr(request_module, "DEFAULT_PAUSE_SECONDS", 0.3)
    url = {"gitlab_url": host.url} if host.provider == "gitlab" else {"gitea_url": host.url}
    config = settings(kube.namespace, public_url="https://crews.example.org", **url)
    async with controller(kube, config) as process:
        yield ControllerTestbed(kube, config, process)


async def put_secret(testbed, token):
    data = {"token": base64.b64encode(token.encode()).decode()}
    if await testbed.kube.get(kinds.SECRET, "git-host"):
        await testbed.kube.patch(kinds.SECRET, "git-host", {"data": data})
    else:
        await testbed.kube.create(kinds.SECRET, {"metadata": {"name": "git-host"}, "data": data})


async def add_project(testbed, host):
    await testbed.project(
        commitStatus={
            "provider": host.provider,
            "repository": REPOSITORIES[host.provider],
            "secretRef": {"name": "git-host"},
        }
    )


async def wait_recorded(testbed, host, state):
    record = f"{host.provider} {REPOSITORIES[host.provider]} {state}"
    return await testbed.until(
        kinds.DEPLOYMENT,
        "dep-a",
        lambda o: (o["metadata"].get("annotations") or {}).get(ANNOTATION_COMMIT_STATUS) == record,
    )


async def test_a_deployment_is_reported_through_an_outage(testbed, host):
    # More refusals than changes of state, so at least one waits for its retry.
    host.failures += [503, *[429] * 6]
    await put_secret(testbed, TOKEN)
    await add_project(testbed, host)
    await testbed.deployment("dep-a", source=COMMIT)
    await testbed.wait_active("dep-a")
    await wait_recorded(testbed, host, "success")
    assert not host.wrong and not host.failures
    last = host.accepted[-1]
    assert (last["state"], last["context"]) == ("success", "crewyard/demo")
    assert last["target_url"] == "https://crews.example.org/console/#/deployments/dep_a"
    states = [body["state"] for body in host.accepted]
    assert all(before != after for before, after in pairwise(states))


async def test_a_pause_holds_for_all_deployments_of_a_project(testbed, host, monkeypatch):
    monkeypatch.setattr(request_module, "DEFAULT_PAUSE_SECONDS", 3600)
    host.failures += [429]
    await put_secret(testbed, TOKEN)
    await add_project(testbed, host)
    await testbed.deployment("dep-a", source=COMMIT)
    async with asyncio.timeout(WAIT_SECONDS):
        while host.failures:
            await asyncio.sleep(0.05)
    await testbed.deployment("dep-b", source=COMMIT)
    await testbed.wait_active("dep-b")
    # Both changed their state since, and both reports wait for the end of the pause.
    delayed, keys = (
        testbed.process.own.queues.reports._due,
        [event_map.commit_status(f"dep-{one}") for one in "ab"],
    )
    async with asyncio.timeout(WAIT_SECONDS):
        while any(delayed.get(key, 0) < time.monotonic() + 60 for key in keys):
            await asyncio.sleep(0.05)
    assert host.accepted == []


async def test_a_refused_token_is_an_event_and_tried_again(testbed, host):
    await put_secret(testbed, "expired")
    await add_project(testbed, host)
    await testbed.deployment("dep-a", source=COMMIT)

    async def events():
        listing = await testbed.kube.list(kinds.EVENT)
        return [one["message"] for one in listing.items if one["reason"] == "CommitStatusRefused"]

    await testbed.wait_active("dep-a")
    async with asyncio.timeout(WAIT_SECONDS):
        while not (found := await events()):
            await asyncio.sleep(0.05)
    (message,) = found
    assert message == (
        f"{host.provider} responded 401: the token in spec.commitStatus.secretRef is invalid or has expired"
    )
    await put_secret(testbed, TOKEN)
    await wait_recorded(testbed, host, "success")
