"""A listener with limits on its connections. Called by `api.http.server` and `controller.process`.

aiohttp limits each request; this module limits the time and bytes that a connection takes to send a
request head, and the number of connections. At the limit it closes the connection that has been idle
longest, so thousands of connections that never finish a request cannot block other clients.
"""

import asyncio
import resource
from collections import OrderedDict
from collections.abc import Callable

from aiohttp import web

IDLE_TIMEOUT_SECONDS = 75.0
"""Idle time between requests and before the first; longer than the keep-alive of proxies."""
HEAD_TIMEOUT_SECONDS = 20.0
"""From the first byte of a request to the last byte of its head."""
MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 64
MAX_CONNECTIONS = 20_000
RESERVED_FILE_DESCRIPTORS = 512
"""Reserved for the store and for outgoing connections."""
SWEEP_SECONDS = 1.0
Refuse = Callable[[str], web.Response]
"""Returns the response, a 400, to bytes that are no HTTP request. The parser's reason may repeat them."""


def refuse_as_text(_reason: str) -> web.Response:
    """Return the response of a server whose errors are texts."""
    return web.Response(status=400, text="this is not a valid HTTP request")


def max_connections(wanted: int = MAX_CONNECTIONS) -> int:
    """Return how many of the wanted connections the hard limit on open files allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(64, hard - RESERVED_FILE_DESCRIPTORS))


def raise_file_limit(wanted: int = MAX_CONNECTIONS) -> int:
    """Raise the soft limit on open files to the hard limit; return the limit of connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return max_connections(wanted)


class ClientConnection(web.RequestHandler):
    """A client connection. `head_bytes`, `head_started_at`: size and start of an incomplete request head."""

    __slots__ = ("_connections", "head_bytes", "head_started_at")

    def __init__(
        self, manager: web.Server, loop: asyncio.AbstractEventLoop, connections: "ClientConnections"
    ) -> None:
        super().__init__(
            manager,
            loop=loop,
            keepalive_timeout=IDLE_TIMEOUT_SECONDS,
            max_headers=MAX_HEADERS,
            # Bodies stay compressed: a decompression bomb would block the event loop for all clients,
            # even after its sender was rejected, while the server drains the rest of the body.
            auto_decompress=False,
            access_log=None,  # type: ignore[arg-type]  # None disables it.
        )
        self._connections = connections
        self.head_bytes = 0
        self.head_started_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Add it to the open connections, idle until its first request."""
        super().connection_made(transport)
        self._connections.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Remove it from the open connections."""
        self._connections.remove(self)
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Respond to bytes that the parser refuses in the form of the application's errors.

        Do not log them, as aiohttp does: they may hold a key, and any client can send them.
        """
        if status != 400:
            return super().handle_error(request, status, exc, message)
        response = self._connections.refuse(message or "")
        response.force_close()
        return response

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a request head; the route limits the body."""
        if data and not self.head_bytes:
            self.head_started_at = self._loop.time()
        self.head_bytes += len(data)
        super().data_received(data)


class ClientConnections:
    """The open connections of one server, at most `limit`."""

    def __init__(self, server: web.Server, limit: int, refuse: Refuse = refuse_as_text) -> None:
        self._server = server
        self.refuse = refuse
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._idle: OrderedDict[ClientConnection, None] = OrderedDict()
        self._count = 0
        self._handle = server.request_handler
        server.request_handler = self._serve
        self._swept_at = 0.0
        self._timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def __len__(self) -> int:
        return self._count

    def make_connection(self) -> ClientConnection:
        """Return the protocol of a new connection, for the listener."""
        return ClientConnection(self._server, self._loop, self)

    def add(self, connection: ClientConnection) -> None:
        """Add an accepted connection; over the limit, close the one idle longest, or this one."""
        self._count += 1
        self._idle[connection] = None
        if self._count > self._limit:
            # Several may be accepted before the loop closes the first one.
            self._idle.popitem(last=False)[0].force_close()

    def remove(self, connection: ClientConnection) -> None:
        """Remove a closed connection."""
        self._count -= 1
        self._idle.pop(connection, None)

    def close(self) -> None:
        """Stop the sweep; the server closes the connections."""
        self._timer.cancel()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, ClientConnection)
        self._idle.pop(connection, None)
        try:
            return await self._handle(request)
        finally:
            # The server drains an unread body for a while, and closes the connection if that does not end.
            request.content.on_eof(lambda: self._mark_idle(connection))

    def _mark_idle(self, connection: ClientConnection) -> None:
        connection.head_bytes = 0
        if connection.transport is not None:
            self._idle[connection] = None

    def _sweep(self) -> None:
        now = self._loop.time()
        for connection in [connection for connection in self._idle if connection.head_bytes]:
            # A large body may arrive together with its head and count here until its request starts;
            # if the event loop was blocked, the request starts only by the next sweep.
            large = connection.head_bytes > MAX_HEAD_BYTES
            if (
                connection.head_started_at < self._swept_at
                if large
                else now - connection.head_started_at > HEAD_TIMEOUT_SECONDS
            ):
                connection.force_close()
        self._swept_at = now
        self._timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)


class BoundedSite(web.BaseSite):
    """A listener with limited connections. `port` 0: any free port."""

    def __init__(
        self, runner: web.AppRunner, host: str, port: int, limit: int, refuse: Refuse = refuse_as_text
    ) -> None:
        super().__init__(runner, backlog=1024)
        assert runner.server is not None
        self._host, self._port = host, port
        self.connections = ClientConnections(runner.server, limit, refuse)

    @property
    def name(self) -> str:
        """The URL it listens on."""
        return f"http://{self._host}:{self._port}"

    async def start(self) -> None:
        """Start to listen. Raises OSError if the port is unavailable."""
        await super().start()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            self.connections.make_connection, self._host, self._port, backlog=self._backlog
        )
        self._server = server
        self._port = server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop accepting connections."""
        self.connections.close()
        await super().stop()
