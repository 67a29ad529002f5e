"""Deliveries with slow bodies: which other deliveries they block."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from api import errors
from api.webhooks import body


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> body.DeliveryReader:
    monkeypatch.setattr(body, "MAX_LARGE_READS", 2)
    monkeypatch.setattr(body, "SLOT_TIMEOUT_SECONDS", 60.0)
    monkeypatch.setattr(body, "BODY_TIMEOUT_SECONDS", 60.0)
    return body.DeliveryReader()


@pytest.fixture
async def address(reader: body.DeliveryReader) -> AsyncIterator[str]:

    async def take(request: web.Request) -> web.Response:
        try:
            found = await reader.read(request, "secret")
        except errors.HttpApiError as error:
            return web.Response(status=error.status)
        return web.Response(text=found.hmac)

    app = web.Application()
    app.router.add_post("/", take)
    async with TestServer(app) as server:
        yield str(server.make_url("/"))


async def test_slow_large_bodies_do_not_block_pushes(
    reader: body.DeliveryReader, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await gate.wait()
        yield b"}"

    async with ClientSession() as http:
        # Without a length they count as large.
        slow = [asyncio.create_task(http.post(address, data=slowly())) for _ in range(2)]
        async with asyncio.timeout(60):
            while not reader._large.locked():
                await asyncio.sleep(0.01)
        monkeypatch.setattr(body, "SLOT_TIMEOUT_SECONDS", 0.2)
        assert (await http.post(address, data=b"x" * (body.SMALL_BODY_BYTES + 1))).status == 503
        push = await http.post(address, data=b"{}")
        assert push.status == 200
        assert await push.text() == hmac.new(b"secret", b"{}", hashlib.sha256).hexdigest()
        gate.set()
        assert [(await answer).status for answer in slow] == [200, 200]
        monkeypatch.setattr(body, "SLOT_TIMEOUT_SECONDS", 60.0)
        assert (await http.post(address, data=b"x" * (body.SMALL_BODY_BYTES + 1))).status == 200
