"""The connections that are open, and which of them may stay. Called by `api.__main__`.

The server itself bounds what a request may be; this bounds how long and how much a connection may take to
become one, and how many there are. Whoever has waited longest without asking for anything makes room, so
that thousands of connections that never finish a request keep nobody out.
"""

import asyncio
import resource
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from aiohttp import web

IDLE_SECONDS = 75.0
"""Without a request, also before the first; longer than what proxies keep a connection for."""
HEAD_SECONDS = 20.0
"""From a request's first byte to the last of its head."""
HEAD_BYTES = 64 * 1024
MAX_HEADERS = 64
MOST = 20_000
SPARE_FILES = 512
"""Descriptors that are left to the store and to what we call ourselves."""
BEAT_SECONDS = 1.0


def most() -> int:
    """How many connections this process may have, once its limit of files is raised."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if hard == resource.RLIM_INFINITY else max(64, min(MOST, hard - SPARE_FILES))


def raise_file_limit() -> int:
    """Lets this process open as many files as it may; gives how many connections that allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return most()


class Connection(web.RequestHandler):
    """One connection. `head`: bytes of a request that is not complete yet; `since`: when they began."""

    __slots__ = ("_open", "head", "since")

    def __init__(self, manager: web.Server, loop: asyncio.AbstractEventLoop, open_: "Connections") -> None:
        super().__init__(
            manager,
            loop=loop,
            keepalive_timeout=IDLE_SECONDS,
            max_headers=MAX_HEADERS,
            # A body is taken as it was sent. What unpacks to a thousand times its size would hold everybody
            # up, also after its sender was refused, while the rest of the body is read away.
            auto_decompress=False,
            access_log=None,  # type: ignore[arg-type]  # None is what switches it off.
        )
        self._open = open_
        self.head = 0
        self.since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It waits for its first request."""
        super().connection_made(transport)
        self._open.entered(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """It is over."""
        self._open.left(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a head count until its request begins; what follows is the route's to bound."""
        if data and not self.head:
            self.since = self._loop.time()
        self.head += len(data)
        super().data_received(data)


class Connections:
    """All connections of one server. `most`: how many there may be."""

    def __init__(self, server: web.Server, most: int) -> None:
        self._server = server
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._waiting: OrderedDict[Connection, None] = OrderedDict()
        self._count = 0
        self._handle = server.request_handler
        server.request_handler = self._serve
        self._looked = 0.0
        self._timer = self._loop.call_later(BEAT_SECONDS, self._beat)

    def __len__(self) -> int:
        return self._count

    def make(self) -> Connection:
        """A connection's protocol, for the listener."""
        return Connection(self._server, self._loop, self)

    def entered(self, connection: Connection) -> None:
        """A connection was accepted. Makes room by ending the one that has waited longest, or this one."""
        self._count += 1
        self._waiting[connection] = None
        if self._count > self._most:
            next(iter(self._waiting)).force_close()

    def left(self, connection: Connection) -> None:
        """A connection has ended."""
        self._count -= 1
        self._waiting.pop(connection, None)

    def close(self) -> None:
        """Ends the looking after them; the server ends the connections themselves."""
        self._timer.cancel()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, Connection)
        self._waiting.pop(connection, None)
        try:
            return await self._handle(request)
        finally:
            connection.head = 0
            # One with a body that was not read is drained for a while and then closed by the server.
            if connection.transport is not None and request.content.is_eof():
                self._waiting[connection] = None

    def _beat(self) -> None:
        now = self._loop.time()
        for connection in [one for one in self._waiting if one.head]:
            # A large body may arrive with its head, and be here for the moment until the request begins;
            # where this loop was held up, that moment is over only at the next beat.
            large = connection.head > HEAD_BYTES
            if connection.since < self._looked if large else now - connection.since > HEAD_SECONDS:
                connection.force_close()
        self._looked = now
        self._timer = self._loop.call_later(BEAT_SECONDS, self._beat)


class Site(web.BaseSite):
    """Where the server listens, with connections of ours. `port` 0 is any."""

    def __init__(self, runner: web.AppRunner, host: str, port: int, most: int) -> None:
        super().__init__(runner, backlog=1024)
        assert runner.server is not None
        self._host, self._port = host, port
        self.connections = Connections(runner.server, most)

    @property
    def name(self) -> str:
        """Its address."""
        return f"http://{self._host}:{self._port}"

    async def start(self) -> None:
        """Begins to listen. Raises OSError where the port cannot be had."""
        await super().start()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            self.connections.make, self._host, self._port, backlog=self._backlog
        )
        self._server = server
        self._port = server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Takes no connection any more."""
        self.connections.close()
        await super().stop()


async def serve(
    application: Awaitable[web.Application],
    host: str,
    port: int,
    seconds: float,
    until: Callable[[], Awaitable[object]],
) -> None:
    """Runs an application until `until` returns; what is under way then has `seconds` to end."""
    runner = web.AppRunner(await application, access_log=None, shutdown_timeout=seconds)
    try:
        await runner.setup()
        await Site(runner, host, port, raise_file_limit()).start()
        await until()
    finally:
        await runner.cleanup()
