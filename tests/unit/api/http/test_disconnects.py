"""A client that disconnects before the end of its body does not count as a failure of the service."""

import asyncio

import pytest
from aiohttp import web
from yarl import URL

from api.services import SERVICES
from tests.unit.api.conftest import ApiTestbed

LENGTH = 1000
PROJECTS, HOOKS = "/v1/projects", "/v1/hooks/git/{name}"
UPLOADS = "/v1/uploads/{id}/content"


@pytest.fixture
def production(testbed) -> ApiTestbed:
    """The testbed as in production: the request of a client that disconnects is not cancelled."""
    testbed.client.server.runner.server.handler_cancellation = False
    return testbed


async def send_part(testbed: ApiTestbed, line: str, fields: str = "") -> None:
    """Send a request with a part of its body, and disconnect."""
    server = testbed.client.make_url("/")
    _, writer = await asyncio.open_connection(server.host, server.port)
    head = f"{line} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {LENGTH}\r\n"
    writer.write(f'{head}{fields}\r\n{{"name":'.encode())
    await writer.drain()
    async with asyncio.timeout(60):
        while not any(map(reads_body, testbed.client.server.runner.server.connections)):
            await asyncio.sleep(0.01)
    writer.close()


def reads_body(connection: web.RequestHandler) -> bool:
    """Return whether the route of the connection's request waits for more of the body."""
    request = connection._current_request
    return request is not None and request.content._waiter is not None


async def codes_of(testbed: ApiTestbed, method: str, route: str) -> list[str]:
    """Return the codes counted for a route, once there is one."""
    requests = testbed.client.server.app[SERVICES].metrics.requests
    for _ in range(600):
        labels = [sample.labels for metric in requests.collect() for sample in metric.samples]
        codes = {each["code"] for each in labels if (each["method"], each["route"]) == (method, route)}
        if codes:
            return sorted(codes)
        await asyncio.sleep(0.05)
    return []


async def test_a_body_that_ends_early_counts_as_a_disconnect(production, capsys):
    await send_part(production, f"POST {PROJECTS}", f"Authorization: Bearer {production.admin}\r\n")
    assert await codes_of(production, "POST", PROJECTS) == ["499"]
    assert "request_failed" not in capsys.readouterr().out


async def test_a_webhook_that_ends_early_counts_as_a_disconnect(production, capsys):
    await send_part(production, "POST /v1/hooks/git/unknown", "X-Gitlab-Token: x\r\n")
    assert await codes_of(production, "POST", HOOKS) == ["499"]
    assert "request_failed" not in capsys.readouterr().out


async def test_an_upload_that_ends_early_counts_as_a_disconnect(production, capsys):
    await production.add_project("crew")
    _, upload, _ = await production.call("POST", "/v1/uploads", {"project": "crew", "size": LENGTH})
    url = URL(upload["data"]["upload_url"])
    await send_part(production, f"PUT {url.raw_path_qs}")
    assert await codes_of(production, "PUT", UPLOADS) == ["499"]
    assert "store_unavailable" not in capsys.readouterr().out
