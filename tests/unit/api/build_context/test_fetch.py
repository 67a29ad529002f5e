"""Fetches from real loopback servers: allowed ones succeed, forbidden ones get no connection."""

import asyncio
import hashlib
import io
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from api.build_context.fetch import MAX_REDIRECTS, ContextTooLarge, FetchedContext, FetchLimits, fetch
from api.build_context.url import ContextUrlRefused, parse_hosts
from egress.addresses import AddressRules, system_resolver
from tests.testbed.ports import free_port

GOOD, BAD = "127.0.0.2", "127.0.0.3"
"""Addresses of an allowed and a forbidden server on the same port."""
RULES = AddressRules.parse([f"{GOOD}/32"], [])
BYTES = b"archive" * 1000


class Servers:
    """Both servers; `asked` has the requests to the allowed one, `visits` counts connections to the other."""

    def __init__(self, port: int) -> None:
        self.port, self.asked, self.visits = port, [], 0

    def hosts(self, *names: str):
        return parse_hosts(",".join(f"{name}:{self.port}" for name in (*names, GOOD)))

    async def fetch(self, path: str = "/a", *, host: str = GOOD, resolve=system_resolver, more=(), **limits):
        into = io.BytesIO()
        at = f"http://{host}:{self.port}{path}"
        found = await fetch(
            at,
            into,
            self.hosts(*more),
            RULES,
            FetchLimits(**{"size": 1 << 20, "total": 60, **limits}),
            resolve,
        )
        assert found == FetchedContext(into.tell(), hashlib.sha256(into.getvalue()).hexdigest())
        return into.getvalue()


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    found = Servers(free_port())

    async def good(request: web.Request) -> web.StreamResponse:
        found.asked.append(request)
        match request.path:
            case "/a":
                return web.Response(body=BYTES, headers={"Content-Encoding": "gzip", "Set-Cookie": "a=b"})
            case "/chunked" | "/slow":
                answer = web.StreamResponse(headers={"Content-Type": "text/html"})
                answer.enable_chunked_encoding()
                await answer.prepare(request)
                for _ in range(10):
                    await answer.write(BYTES)
                    await asyncio.sleep(0.3 if request.path == "/slow" else 0)
                return answer
            case "/to":
                cookie = {"Set-Cookie": "a=b"}
                return web.Response(status=302, headers={"Location": request.query["at"], **cookie})
            case "/round":
                left = int(request.query["n"])
                return web.Response(
                    status=307, headers={"Location": f"/round?n={left - 1}" if left else "/a"}
                )
        return web.Response(status=404)

    async def bad(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.visits += 1
        writer.close()

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", good)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, GOOD, found.port).start()
    others = [await asyncio.start_server(bad, host, found.port) for host in (BAD, "127.0.0.1", "::1")]
    yield found
    for other in others:
        other.close()
    await runner.cleanup()


async def test_bytes_are_fetched_unchanged_for_any_content_type(servers, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://{BAD}:{servers.port}")
    assert await servers.fetch("/a") == BYTES
    assert await servers.fetch("/chunked") == BYTES * 10
    assert await servers.fetch(f"/round?n={MAX_REDIRECTS - 1}") == BYTES
    for request in servers.asked:
        assert not {"Authorization", "Cookie", "Referer"} & set(request.headers)
        assert request.headers["Host"] == f"{GOOD}:{servers.port}"
    assert servers.visits == 0


async def test_fetch_is_bounded_in_bytes_time_and_redirects(servers):
    with pytest.raises(ContextUrlRefused, match=f"more than {MAX_REDIRECTS} times"):
        await servers.fetch(f"/round?n={MAX_REDIRECTS}")
    for path in ("/a", "/chunked"):
        with pytest.raises(ContextTooLarge):
            await servers.fetch(path, size=len(BYTES) - 1)
    assert await servers.fetch("/a", size=len(BYTES)) == BYTES
    with pytest.raises(ContextUrlRefused, match="took too long"):
        await servers.fetch("/slow", total=0.2)
    with pytest.raises(ContextUrlRefused, match="could not be fetched"):
        await servers.fetch("/slow", idle=0.1)
    with pytest.raises(ContextUrlRefused, match="got status 404"):
        await servers.fetch("/none")


FORBIDDEN = [
    BAD, "127.3", "0x7f.3", "0x7f000003", "2130706435", "017700000003", "0177.0.0.3", "127.0.0.03",
    "localhost",
    "127.0.0.1", "[::1]", "[::ffff:127.0.0.3]", "[::ffff:7f00:3]", "[64:ff9b::7f00:3]", "[2002:7f00:3::]",
    "0", "[::]",
    f"{GOOD}@{BAD}", f"{BAD}\\@{GOOD}", f"{BAD}%2f@{GOOD}", f"{GOOD}.", "LOCALHOST.", "１２７.0.0.3",
]  # fmt: skip


@pytest.mark.parametrize("host", FORBIDDEN)
async def test_forbidden_address_is_rejected_in_any_spelling(servers, host):
    at = f"http://{host}:{servers.port}/a"
    for path in ("/a", f"/to?at={at}"):
        with pytest.raises(ContextUrlRefused):
            if path == "/a":
                await servers.fetch(host=host)
            else:
                await servers.fetch(path)
    assert servers.visits == 0


@pytest.mark.parametrize(
    "host", [BAD, "localhost", "127.0.0.1", "[::1]", "[::ffff:7f00:3]", "metadata.example"]
)
async def test_allowed_host_must_resolve_to_an_allowed_address(servers, host):
    def resolve(name: str, port: int) -> list[str]:
        return [BAD] if name == "metadata.example" else system_resolver(name, port)

    for path, at in (("/a", host), (f"/to?at=http://{host}:{servers.port}/a", GOOD)):
        with pytest.raises(ContextUrlRefused, match="not in the allowed networks"):
            await servers.fetch(path, host=at, more=[host], resolve=resolve)
    assert servers.visits == 0


@pytest.mark.parametrize(
    "location",
    ["file:///etc/passwd", "gopher://{bad}/", "ftp://{bad}/", "ext::sh", "https://{bad}/", "//{bad}/a",
     "http:{bad}",
     "HTTP://{bad}/", "\\\\{bad}\\a", "http:/\\{bad}/a", "http://{good}@{bad}/a", "http://{good}#@{bad}/",
     "", "a b"],
)  # fmt: skip
async def test_redirects_cannot_leave_the_allowed_hosts(servers, location):
    filled = location.format(bad=f"{BAD}:{servers.port}", good=f"{GOOD}:{servers.port}")
    with pytest.raises(ContextUrlRefused):
        await servers.fetch("/to?at=" + filled.replace("#", "%23").replace(" ", "%20"))
    assert servers.visits == 0


async def test_name_is_resolved_once_per_redirect_and_pinned(servers):
    asked = []

    def turning(name: str, port: int) -> list[str]:
        asked.append(name)
        return [GOOD] if len(asked) % 2 else [BAD]

    names = ["turning.example"]
    assert await servers.fetch(host=names[0], more=names, resolve=turning) == BYTES
    assert len(asked) == 1
    asked.clear()
    with pytest.raises(ContextUrlRefused, match="not in the allowed networks"):
        await servers.fetch(
            f"/to?at=http://turning.example:{servers.port}/a", host=names[0], more=names, resolve=turning
        )
    assert len(asked) == 2 and servers.visits == 0

    def both(name: str, port: int) -> list[str]:
        return [GOOD, BAD]

    with pytest.raises(ContextUrlRefused, match="not in the allowed networks"):
        await servers.fetch(host=names[0], more=names, resolve=both)
    assert servers.visits == 0


async def test_unresolvable_host_and_refused_connection(servers):
    def nobody(name: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "no")

    with pytest.raises(ContextUrlRefused, match="does not resolve"):
        await servers.fetch(host="gone.example", more=["gone.example"], resolve=nobody)
    with socket.socket() as free:
        free.bind((GOOD, 0))
        port = free.getsockname()[1]
        with pytest.raises(ContextUrlRefused, match="could not be fetched"):
            hosts = parse_hosts(f"{GOOD}:{port}")
            await fetch(f"http://{GOOD}:{port}/", io.BytesIO(), hosts, RULES, FetchLimits(9))
