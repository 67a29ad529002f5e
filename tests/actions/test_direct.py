"""Artifacts and uploads that are in an object store at an address of its own: reached without the key."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer

from actions.workflow import artifacts
from actions.workflow.client.api import Api
from actions.workflow.console import Console
from actions.workflow.errors import Failed

BODY = b"the file"
ITEM = {"name": "a.txt", "size": len(BODY), "sha256": hashlib.sha256(BODY).hexdigest()}


class Given:
    """A credential that does not change."""

    def bearer(self) -> str:
        return "crw_secret"

    def renew(self) -> bool:
        return False


class Places:
    """A service whose answer is elsewhere: `there` is what it says."""

    def __init__(self) -> None:
        self.url = self.there = ""
        self.asked: list[dict[str, str]] = []
        self.keys: list[str | None] = []

    async def moved(self, request: web.Request) -> web.Response:
        self.keys.append(request.headers.get("Authorization"))
        return web.Response(status=307, headers={"Location": self.there})

    async def bucket(self, request: web.Request) -> web.Response:
        self.asked.append(dict(request.headers))
        return web.Response(body=BODY)


@pytest_asyncio.fixture
async def places() -> AsyncIterator[Places]:
    found = Places()
    app = web.Application()
    app.router.add_get("/v1/{rest:.*}", found.moved)
    app.router.add_get("/bucket", found.bucket)
    async with TestServer(app) as server:
        found.url = str(server.make_url("")).rstrip("/")
        yield found


async def fetch(places: Places, directory) -> bytes:
    api = Api(places.url, Given(), Console(), time.monotonic() + 120)  # type: ignore[arg-type]
    place = await asyncio.to_thread(artifacts.fetch, api, "run_a", ITEM, artifacts.Shelf(directory))
    return place.read_bytes()


async def test_an_artifact_is_fetched_from_where_the_service_says_without_the_key(places, tmp_path):
    places.there = f"{places.url}/bucket"
    assert await fetch(places, tmp_path) == BODY
    [headers] = places.asked
    assert "Authorization" not in headers
    assert places.keys == ["Bearer crw_secret"]


@pytest.mark.parametrize("there", ["", "/bucket", "ftp://x/y", "file:///etc/passwd", "{url}/v1/again"])
async def test_no_other_redirect_is_followed(places, tmp_path, there):
    places.there = there.format(url=places.url)
    with pytest.raises(Failed, match="redirect"):
        await fetch(places, tmp_path)
    assert places.asked == [] and list(tmp_path.iterdir()) == []
