"""An open event stream: what it takes at once, when it is full, when its reader is cut off.

Called by `api.streaming.response`, `api.streaming.fanout`, `api.streaming.registry` and the routes that follow something.
"""

import asyncio
import socket

from aiohttp import web
from aiohttp.http import HttpVersion11

from api.streaming.sse import Piece

KEEPALIVE_SECONDS = 15.0
RETRY_MILLISECONDS = 2000
SEND_SECONDS = 30.0
"""How long a reader may leave a full buffer standing; then it is cut off, and resumes by its last id."""
FULL_BYTES = 64 * 1024
"""What waits for a reader, at which nothing more is written: the transport's own mark, which asyncio sets."""
KEEPALIVE = Piece.of(b": keepalive\n\n")
PREAMBLE = f"retry: {RETRY_MILLISECONDS}\n\n".encode()


def _bound_silence(transport: asyncio.Transport) -> None:
    """Lets the kernel end a connection whose other side vanished or takes nothing any more."""
    connection = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux has it.
    if connection is not None and option and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, option, int(1000 * (SEND_SECONDS + KEEPALIVE_SECONDS)))


class SlowReader(Exception):
    """The reader took nothing for too long and was cut off."""


class Stream:
    """An answer that goes on. It writes to its connection directly, since what it writes is shared.

    A piece is framed once for all who follow the same thing, and handed to each connection without a task
    being woken for it. A stream that is `full` is written no further; it waits for `drained` and goes on from
    where it was, so that at most `FULL_BYTES` and one piece are ever held for a reader.
    """

    __slots__ = ("_chunked", "_request", "_transport", "response", "spoke")

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._transport: asyncio.Transport | None = None
        self._chunked = request.version >= HttpVersion11
        self.spoke = 0.0
        self.response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
            }
        )

    async def open(self) -> None:
        """Answers 200 and the preamble. Raises ConnectionError where the reader has gone."""
        transport = self._request.transport
        if not isinstance(transport, asyncio.Transport):
            raise ConnectionResetError("the reader has gone")
        _bound_silence(transport)
        if self._chunked:
            self.response.enable_chunked_encoding()
        await self.response.prepare(self._request)
        # The first write takes the headers along; what follows needs nothing of the response any more.
        await self.response.write(PREAMBLE)
        self.spoke = asyncio.get_running_loop().time()
        self._transport = transport

    def put(self, piece: Piece, now: float) -> None:
        """Writes a piece, now; never waits. Raises ConnectionError where the reader has gone."""
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the reader has gone")
        self._transport.write(piece.chunk if self._chunked else piece.plain)
        self.spoke = now

    @property
    def full(self) -> bool:
        """Whether the reader has so much left to take that nothing more is to be written."""
        return self._transport is not None and self._transport.get_write_buffer_size() > FULL_BYTES

    async def drained(self) -> None:
        """Returns once the reader has taken most of it. Raises SlowReader, ConnectionError."""
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self._request.writer.drain()
        except TimeoutError as error:
            # A graceful end would wait for the same full buffer.
            if self._transport is not None:
                self._transport.abort()
            raise SlowReader from error

    def beat(self, now: float) -> bool:
        """A sign of life, which proxies see as traffic and readers ignore, if it is time for one.

        Whether the reader is still there.
        """
        if self._transport is None:
            return True
        if self._transport.is_closing():
            return False
        if now - self.spoke >= KEEPALIVE_SECONDS and not self._transport.get_write_buffer_size():
            self.put(KEEPALIVE, now)
        return True
