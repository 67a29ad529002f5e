"""A reader or sender that stops holds its own share; other callers go on."""

import asyncio
import contextlib
import json
import socket

import pytest

from api.errors import HttpApiError
from api.http.caller_shares import ByteBudget, CallerSlots
from api.routing import download
from api.services import SERVICES
from api.streaming import connection

FILE_BYTES = 32 << 20
"""More than the buffers of a connection take."""


def test_slots_of_one_caller_and_of_all():
    slots = CallerSlots(3, 2)
    with slots.slot("a"), slots.slot("a"):
        with pytest.raises(HttpApiError) as refused, slots.slot("a"):
            pass
        assert (refused.value.status, refused.value.details) == (429, {"limit": 2})
        with slots.slot("b"), pytest.raises(HttpApiError) as refused, slots.slot("c"):
            pass
        assert refused.value.status == 503
    with slots.slot("a"), slots.slot("b"), slots.slot("c"):
        pass


async def test_bytes_of_one_caller_and_of_all():
    budget = ByteBudget(30, 20, 0.05)
    async with budget.reserve("a", 15):
        with pytest.raises(HttpApiError) as refused:
            async with budget.reserve("a", 6):
                pass
        assert (refused.value.status, refused.value.details) == (429, {"limit_bytes": 20})
        async with budget.reserve("b", 15):
            with pytest.raises(HttpApiError) as refused:
                async with budget.reserve("c", 1):
                    pass
            assert refused.value.status == 503
        async with budget.reserve("c", 1):
            pass
    # More than a caller's share is its whole share.
    async with budget.reserve("a", 1000):
        pass


async def test_a_body_waits_for_its_share():
    budget, order = ByteBudget(10, 10, 60.0), []

    async def send(name):
        async with budget.reserve("a", 10):
            order.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(*map(send, range(5)))
    assert sorted(order) == list(range(5))


def stalled_request(testbed, lines, bearer):
    """Open a connection with a small buffer, send a request and read nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", testbed.client.server.port))
    head = f"{lines}\r\nHost: x\r\nAuthorization: Bearer {bearer}\r\n"
    client.sendall(head.encode())
    return client


@pytest.fixture
async def artifact(testbed):
    await testbed.add_project("crew", activeDeployment="dep-a")
    await testbed.add_deployment("dep-a", "crew")
    await testbed.add_run("run-a", "crew", "dep-a")
    await testbed.add_artifact("run-a", "big", b"x" * FILE_BYTES)
    return "/v1/runs/run_a/artifacts/big"


async def received(client):
    """Return how many bytes arrive until the server ends the connection."""
    loop, count = asyncio.get_running_loop(), 0
    client.setblocking(False)
    with contextlib.suppress(ConnectionError):
        while data := await loop.sock_recv(client, 1 << 20):
            count += len(data)
    return count


# Without the guard it waits until then.
@pytest.mark.timeout(200)
async def test_a_reader_that_stops_is_cut_and_another_is_served(testbed, artifact, monkeypatch):
    slots, write = testbed.client.server.app[SERVICES].downloads, download.write
    with stalled_request(testbed, f"GET {artifact} HTTP/1.1", testbed.admin) as client:

        async def impatient(request, response, data):
            """Wait briefly for the one that stops, and for another as long as a busy machine needs."""
            stops = request.transport and request.transport.get_extra_info("peername") == client.getsockname()
            for start in range(0, len(data), download.PIECE_BYTES):
                monkeypatch.setattr(connection, "SEND_TIMEOUT_SECONDS", 0.2 if stops else 60.0)
                await write(request, response, data[start : start + download.PIECE_BYTES])

        monkeypatch.setattr(download, "write", impatient)
        client.sendall(b"\r\n")
        while not slots._taken.total():
            await asyncio.sleep(0.01)
        status, content, _ = await testbed.call("GET", artifact)
        assert (status, len(content)) == (200, FILE_BYTES)
        while slots._taken.total():
            await asyncio.sleep(0.01)
        assert await received(client) < FILE_BYTES


async def test_downloads_of_a_key_are_bounded_and_another_key_downloads(testbed, artifact):
    services = testbed.client.server.app[SERVICES]
    services.downloads._per_caller = 2
    greedy, other = (testbed.create_key("read", projects=["crew"]) for _ in range(2))
    with contextlib.ExitStack() as open_clients:
        for _ in range(2):
            client = stalled_request(testbed, f"GET {artifact} HTTP/1.1", greedy)
            open_clients.enter_context(client).sendall(b"\r\n")
        while services.downloads._taken.total() < 2:
            await asyncio.sleep(0.01)
        status, _, headers = await testbed.call("GET", artifact, bearer=greedy)
        assert (status, headers["Retry-After"]) == (429, "2")
        for path in (artifact, "/v1/runs/run_a/logs"):
            assert (await testbed.call("GET", path, bearer=other))[0] == 200


async def test_bodies_that_stop_hold_the_share_of_their_key(testbed):
    services = testbed.client.server.app[SERVICES]
    services.bodies._per_caller, services.bodies._wait_seconds = 2 << 20, 0.1
    greedy, other = (testbed.create_key("run") for _ in range(2))
    with stalled_request(testbed, "POST /v1/runs HTTP/1.1", greedy) as client:
        client.sendall(f"Content-Type: application/json\r\nContent-Length: {2 << 20}\r\n\r\n{{".encode())
        while not services.bodies._held.total():
            await asyncio.sleep(0.01)
        body = {"deployment": "dep_none"}
        assert (await testbed.call("POST", "/v1/runs", body, bearer=greedy))[0] == 429
        assert (await testbed.call("POST", "/v1/runs", body, bearer=other))[0] == 404
    while services.bodies._held.total():
        await asyncio.sleep(0.01)
    assert (await testbed.call("POST", "/v1/runs", body, bearer=greedy))[0] == 404


async def test_log_as_text_is_complete_for_any_read_sizes(testbed):
    await testbed.add_project("crew", activeDeployment="dep-a")
    await testbed.add_deployment("dep-a", "crew")
    await testbed.claim_run(await testbed.add_run("run-a", "crew", "dep-a"))
    await testbed.append_log_lines("run-a", *(f"line {number}" for number in range(1000)))
    status, text, _ = await testbed.call("GET", "/v1/runs/run_a/logs")
    assert status == 200 and text.decode().count("line ") == 1000
    assert json.dumps(text.decode()).count("line 999") == 1
