"""Each rule does to a connection what it says, before a real server of HTTP."""

import asyncio

import aiohttp
import pytest
from aiohttp import web

from tests.campaign.outages.network.link import open_link
from tests.campaign.outages.network.rule import (
    DOWN,
    UP,
    CutAfterBytes,
    FixedResponse,
    GarbageBytes,
    LinkRule,
    SilentLink,
    SlowLink,
)

LARGE = bytes(range(256)) * 4000
SOON = 60.0


class UpstreamServer:
    """A server that gives LARGE, and keeps what it was sent whole."""

    def __init__(self):
        self.kept = []

    async def get(self, _):
        return web.Response(body=LARGE)

    async def put(self, request):
        self.kept.append(await request.read())
        return web.Response(text=str(len(self.kept[-1])))


@pytest.fixture
async def far():
    found = UpstreamServer()
    app = web.Application(client_max_size=1 << 30)
    app.router.add_get("/{path:.*}", found.get)
    app.router.add_put("/{path:.*}", found.put)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.port = runner.addresses[0][1]
    yield found
    await runner.cleanup()


@pytest.fixture
async def link(far):
    async with open_link("127.0.0.1", far.port) as found:
        yield found


@pytest.fixture
async def client(link):
    limit = aiohttp.ClientTimeout(total=SOON)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{link.port}", timeout=limit) as session:
        yield session


async def got(client, path="/a"):
    async with client.get(path) as answer:
        return answer.status, await answer.read()


async def put(client, data=LARGE, path="/a"):
    async with client.put(path, data=data) as answer:
        return answer.status, await answer.text()


async def test_traffic_passes_without_a_fault(link, client, far):
    async with link.fault(LinkRule()):
        assert await got(client) == (200, LARGE)
        assert await put(client) == (200, str(len(LARGE)))
    assert (far.kept, link.injected) == ([LARGE], 0)


@pytest.mark.parametrize(
    "rule", [CutAfterBytes(UP, 100_000), GarbageBytes(), FixedResponse(503), FixedResponse(401, "no")]
)
async def test_faulty_upload_is_not_stored(link, client, far, rule):
    async with link.fault(rule):
        try:
            assert (await put(client))[0] in (503, 401)
        except aiohttp.ClientError:
            assert not isinstance(rule, FixedResponse)
    assert far.kept == [] and link.injected == rule.injected > 0
    assert await put(client) == (200, str(len(LARGE)))


async def test_truncated_response_is_an_error(link, client):
    async with link.fault(CutAfterBytes(DOWN, 100_000, most=1)):
        with pytest.raises(aiohttp.ClientError):
            await got(client)
        assert await got(client) == (200, LARGE), "just one was to be cut"
    assert link.injected == 1


async def test_refused_link_closes_open_connections(link, client):
    assert await got(client) == (200, LARGE)
    async with link.refusing():
        with pytest.raises(aiohttp.ClientConnectionError):
            await got(client)
    assert await got(client) == (200, LARGE)
    assert link.injected == 1


@pytest.mark.parametrize("rule", [SilentLink(), SlowLink(3600, 1)])
async def test_hung_connection_continues_after_the_fault(link, client, rule):
    async with link.fault(rule):
        asking = asyncio.create_task(got(client))
        async with asyncio.timeout(SOON):
            while not rule.injected:
                await asyncio.sleep(0.01)
        done, _ = await asyncio.wait((asking,), timeout=0.2)
        assert not done
    assert await asking == (200, LARGE)


async def test_rule_matches_named_requests_only(link, client):
    wrong = FixedResponse(507, "full", which=lambda line: line.method == "PUT" and "/b" in line.path)
    async with link.fault(wrong):
        assert (await got(client, "/b"))[0] == 200
        assert (await put(client, path="/a"))[0] == 200
        assert await put(client, path="/b") == (507, "full")
        assert wrong.injected == 1
