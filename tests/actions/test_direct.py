"""Artifacts in an object store behind a redirect: fetched without the key."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer

from actions.workflow import artifacts
from actions.workflow.client.api import ApiClient
from actions.workflow.console import Console
from actions.workflow.errors import StepFailed

BODY = b"the file"
ITEM = {"name": "a.txt", "size": len(BODY), "sha256": hashlib.sha256(BODY).hexdigest()}


class FixedCredential:
    """A credential that does not change."""

    def bearer(self, _seconds: float) -> str:
        return "crw_secret"

    def renew(self) -> bool:
        return False


class RedirectingService:
    """A service that redirects to `location`."""

    def __init__(self) -> None:
        self.url = self.location = ""
        self.requests: list[dict[str, str]] = []
        self.keys: list[str | None] = []

    async def redirect(self, request: web.Request) -> web.Response:
        self.keys.append(request.headers.get("Authorization"))
        return web.Response(status=307, headers={"Location": self.location})

    async def bucket(self, request: web.Request) -> web.Response:
        self.requests.append(dict(request.headers))
        return web.Response(body=BODY)


@pytest_asyncio.fixture
async def service() -> AsyncIterator[RedirectingService]:
    service = RedirectingService()
    app = web.Application()
    app.router.add_get("/v1/{rest:.*}", service.redirect)
    app.router.add_get("/bucket", service.bucket)
    async with TestServer(app) as server:
        service.url = str(server.make_url("")).rstrip("/")
        yield service


async def fetch(service: RedirectingService, directory) -> bytes:
    api = ApiClient(service.url, FixedCredential(), Console(), time.monotonic() + 120)  # type: ignore[arg-type]
    place = await asyncio.to_thread(
        artifacts.fetch, api, "run_a", ITEM, artifacts.DownloadDirectory(directory)
    )
    return place.read_bytes()


async def test_an_artifact_is_fetched_from_the_redirect_without_the_key(service, tmp_path):
    service.location = f"{service.url}/bucket"
    assert await fetch(service, tmp_path) == BODY
    [headers] = service.requests
    assert "Authorization" not in headers
    assert service.keys == ["Bearer crw_secret"]


@pytest.mark.parametrize("location", ["", "/bucket", "ftp://x/y", "file:///etc/passwd", "{url}/v1/again"])
async def test_no_other_redirect_is_followed(service, tmp_path, location):
    service.location = location.format(url=service.url)
    with pytest.raises(StepFailed, match="redirect"):
        await fetch(service, tmp_path)
    assert service.requests == [] and list(tmp_path.iterdir()) == []
