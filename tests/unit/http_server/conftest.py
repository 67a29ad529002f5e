"""A server with bounded connections, also over the API: `connections_testbed` is for its tests, too."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from http_server import connections


class ConnectionsTestbed:
    """A server with bounded connections, and a well-behaved client beside the others."""

    def __init__(
        self, site: connections.BoundedSite, session: aiohttp.ClientSession, path: str, key: str
    ) -> None:
        self.open, self.key = site.connections, key
        self._port, self._session, self._path = site_port(site), session, path

    async def check_ordinary_request(self) -> None:
        """Check that a well-behaved client gets a response."""
        async with self._session.get(self._path) as answer:
            assert answer.status == 200

    async def connect(
        self, head: str, sent: bytes = b""
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection and send this part of a request; `{key}` stands for the key."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        writer.write(head.format(key=self.key).encode() + sent)
        await writer.drain()
        return reader, writer

    async def wait_for_closed(self) -> None:
        """Wait until only the connection of the well-behaved client is open."""
        async with asyncio.timeout(60):
            while len(self.open) > 1:
                await asyncio.sleep(0.02)


def site_port(site: connections.BoundedSite) -> int:
    """Return the port that a site listens on."""
    return int(site.name.rsplit(":", 1)[1])


def descriptors() -> int:
    """Return the number of open files of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


@contextlib.asynccontextmanager
async def connections_testbed(
    runner: web.AppRunner, path: str, key: str = "", refuse: connections.Refuse = connections.refuse_as_text
) -> AsyncIterator[ConnectionsTestbed]:
    """Serve an application on one more port with short timeouts. At the end nothing may be left open."""
    connections.raise_file_limit()
    headers = {"Authorization": f"Bearer {key}"}
    with pytest.MonkeyPatch.context() as patch:
        # Longer than this process, which sends the heads too, may wait for a processor.
        patch.setattr(connections, "HEAD_TIMEOUT_SECONDS", 3.0)
        patch.setattr(connections, "SWEEP_SECONDS", 0.1)
        site = connections.BoundedSite(runner, "127.0.0.1", 0, 3000, refuse)
        await site.start()
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{site_port(site)}", headers=headers) as session,
            asyncio.timeout(180),
        ):
            found = ConnectionsTestbed(site, session, path, key)
            await found.check_ordinary_request()
            await asyncio.sleep(0)
            files, tasks = descriptors(), len(asyncio.all_tasks())
            yield found
            await found.wait_for_closed()
            await found.check_ordinary_request()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(120):
                    while descriptors() > files or len(asyncio.all_tasks()) > tasks:
                        await asyncio.sleep(0.05)
            assert descriptors() <= files
            assert len(asyncio.all_tasks()) <= tasks


@pytest.fixture
async def testbed() -> AsyncIterator[ConnectionsTestbed]:
    """A server that answers with the length of the body; it reads no body that is sent to /refused."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=str(len(await request.read())))

    app = web.Application()

    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=401)

    app.router.add_route("*", "/", answer)
    app.router.add_route("*", "/refused", refuse)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        async with connections_testbed(runner, "/") as opened:
            yield opened
    finally:
        await runner.cleanup()
