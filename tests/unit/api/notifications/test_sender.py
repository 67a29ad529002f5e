"""Messages to real receivers on loopback addresses, of which one is allowed."""

import asyncio
import ipaddress
import threading
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from api.notifications.sender import WebhookSender
from api.outbound.guarded_post import MAX_THREADS_PER_PROJECT, RESOLVER_THREADS
from egress.addresses import AddressRules, system_resolver
from tests.testbed.ports import free_port

GOOD, BAD = "127.0.0.2", "127.0.0.3"
RULES = AddressRules.parse([f"{GOOD}/32"], [])


class LoopbackReceivers:
    """An allowed receiver and a forbidden one, which counts connections."""

    def __init__(self, port: int) -> None:
        self.port, self.taken, self.visits, self.release = port, [], 0, asyncio.Event()

    def url(self, path: str, host: str = GOOD) -> str:
        return f"http://{host}:{self.port}{path}"


@pytest.fixture
async def receivers() -> AsyncIterator[LoopbackReceivers]:
    found = LoopbackReceivers(free_port())

    async def good(request: web.Request) -> web.StreamResponse:
        found.taken.append((request.path_qs, dict(request.headers), await request.read()))
        match request.path:
            case "/slow":
                await found.release.wait()
            case "/to":
                return web.Response(status=307, headers={"Location": found.url("/taken")})
            case "/down":
                return web.Response(status=503)
            case "/endless":
                answer = web.StreamResponse()
                await answer.prepare(request)
                while True:
                    await answer.write(b"x" * 65536)
        return web.Response(status=204, headers={"Set-Cookie": "a=b"})

    async def bad(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.visits += 1
        writer.close()

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", good)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, GOOD, found.port).start()
    others = [await asyncio.start_server(bad, host, found.port) for host in (BAD, "127.0.0.1", "::1")]
    yield found
    found.release.set()
    for other in others:
        other.close()
    await runner.cleanup()


@pytest.fixture
def sender():
    made = WebhookSender(RULES)
    yield made
    made.close()


async def test_a_receiver_gets_the_message_unchanged(receivers, sender, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://{BAD}:{receivers.port}")
    attempt = await sender.send(receivers.url("/in?a=1"), b'{"a":1}', {"webhook-id": "msg_a"}, "uid-a")
    assert (attempt.response_status, attempt.error) == (204, None)
    assert receivers.visits == 0
    [(path, headers, content)] = receivers.taken
    assert (path, headers["webhook-id"], content) == ("/in?a=1", "msg_a", b'{"a":1}')
    await sender.send(receivers.url("/in"), b"{}", {}, "uid-a")
    assert "Cookie" not in receivers.taken[1][1]


async def test_other_statuses_are_errors_and_redirects_are_not_followed(receivers, sender):
    attempt = await sender.send(receivers.url("/down"), b"{}", {}, "uid-a")
    assert (attempt.response_status, attempt.error) == (503, f"{GOOD} responded with status 503")
    attempt = await sender.send(receivers.url("/to"), b"{}", {}, "uid-a")
    assert attempt.response_status == 307 and "redirects are not followed" in attempt.error
    assert [path for path, *_ in receivers.taken] == ["/down", "/to"]


async def test_a_slow_receiver_is_left_and_an_endless_response_is_not_read(receivers):
    impatient = WebhookSender(RULES, timeout=0.5)
    attempt = await impatient.send(receivers.url("/slow"), b"{}", {}, "uid-a")
    assert attempt == type(attempt)(None, f"{GOOD} did not respond within 0.5 s")
    impatient.close()
    patient = WebhookSender(RULES, timeout=60)
    assert (await patient.send(receivers.url("/endless"), b"{}", {}, "uid-a")).response_status == 200
    patient.close()


@pytest.mark.parametrize(
    "host", [BAD, "127.0.0.1", "[::1]", "localhost", f"[{ipaddress.IPv6Address('::ffff:127.0.0.3')}]"]
)
async def test_a_private_receiver_gets_no_connection(receivers, sender, host):
    attempt = await sender.send(receivers.url("/in", host), b"{}", {}, "uid-a")
    assert attempt.response_status is None and "networks that this installation connects to" in attempt.error
    assert receivers.visits == 0


async def test_the_checked_address_of_a_name_gets_the_connection(receivers):
    answers = iter([[GOOD], [BAD]])
    sender = WebhookSender(RULES, lambda host, port: next(answers))
    assert (await sender.send(receivers.url("/in", "hooks.example.com"), b"{}", {}, "uid-a")).error is None
    assert receivers.taken[0][1]["Host"] == f"hooks.example.com:{receivers.port}"
    refused = await sender.send(receivers.url("/in", "hooks.example.com"), b"{}", {}, "uid-a")
    assert "networks" in refused.error and receivers.visits == 0
    mixed = WebhookSender(RULES, lambda host, port: [GOOD, BAD])
    assert (
        "networks" in (await mixed.send(receivers.url("/in", "hooks.example.com"), b"{}", {}, "uid-a")).error
    )
    sender.close()
    mixed.close()


async def test_slow_names_of_a_project_delay_no_other_project(receivers):
    release, stuck = threading.Event(), []

    def resolve(host: str, port: int) -> list[str]:
        if host == "stuck.example.com":
            stuck.append(host)
            release.wait()
        return [GOOD]

    sender = WebhookSender(RULES, resolve)
    url, slow = (receivers.url("/in", host) for host in ("hooks.example.com", "stuck.example.com"))
    try:
        for _ in range(2):
            # An attempt that is left keeps its thread.
            waiting = [
                asyncio.create_task(sender.send(slow, b"{}", {}, "uid-a")) for _ in range(RESOLVER_THREADS)
            ]
            assert (await sender.send(url, b"{}", {}, "uid-b")).error is None
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        assert len(stuck) <= MAX_THREADS_PER_PROJECT
        last = asyncio.create_task(sender.send(slow, b"{}", {}, "uid-a"))
        release.set()
        assert (await last).error is None
    finally:
        release.set()
        sender.close()


async def test_slow_name_is_named_in_the_error(receivers):
    release = threading.Event()
    sender = WebhookSender(RULES, lambda host, port: [GOOD] if release.wait() else [], timeout=0.1)
    try:
        attempt = await sender.send(receivers.url("/in", "slow.example.com"), b"{}", {}, "uid-a")
    finally:
        release.set()
        sender.close()
    assert attempt == type(attempt)(None, "slow.example.com was not resolved within 0.1 s")


async def test_what_cannot_be_reached_is_an_error(receivers, sender):
    attempt = await sender.send(f"http://{GOOD}:{free_port()}/", b"{}", {}, "uid-a")
    assert "could not be reached" in attempt.error
    missing = WebhookSender(RULES, system_resolver)
    attempt = await missing.send("http://missing.invalid/", b"{}", {}, "uid-a")
    assert "could not be reached" in attempt.error
    missing.close()
    for url in ("ftp://hooks.example.com/", "http://user:pw@hooks.example.com/", "http://0x7f.1/", "x"):
        assert (await sender.send(url, b"{}", {}, "uid-a")).error.startswith("the URL must")
