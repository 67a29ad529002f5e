"""An open event stream: writes, back-pressure, keep-alive and the cut-off of slow readers.

Called by `api.routing.stream_response`, `api.streaming.fanout`, `api.streaming.registry` and the streaming
routes.
"""

import asyncio
import socket

from aiohttp import web
from aiohttp.http import HttpVersion11

from api.streaming.sse import SseBatch

KEEPALIVE_SECONDS = 15.0
RETRY_MILLISECONDS = 2000
SEND_TIMEOUT_SECONDS = 30.0
"""Time a reader may leave a full buffer; then the stream is aborted, and the client resumes by last id."""
MAX_BUFFER_BYTES = 64 * 1024
"""Buffered bytes above which writes stop: the default high-water mark of asyncio transports."""
KEEPALIVE = SseBatch.of(b": keepalive\n\n")
PREAMBLE = f"retry: {RETRY_MILLISECONDS}\n\n".encode()


def _set_user_timeout(transport: asyncio.Transport) -> None:
    """Set TCP_USER_TIMEOUT: the kernel closes a connection whose peer vanished or stopped reading."""
    connection = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux only.
    if connection is not None and option and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(
            socket.IPPROTO_TCP, option, int(1000 * (SEND_TIMEOUT_SECONDS + KEEPALIVE_SECONDS))
        )


class SlowReader(Exception):
    """The reader took no data for too long; its connection was aborted."""


class EventStream:
    """An open-ended response that writes to its transport directly, since batches are shared.

    A batch is encoded once for all streams of a run and written to each transport without waking a task.
    A `full` stream gets no more writes; it awaits `drain` and resumes at its position, so at most
    `MAX_BUFFER_BYTES` and one batch are buffered per reader.
    """

    __slots__ = ("_chunked", "_request", "_transport", "response", "written_at")

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._transport: asyncio.Transport | None = None
        self._chunked = request.version >= HttpVersion11
        self.written_at = 0.0
        self.response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
            }
        )

    async def open(self) -> None:
        """Send 200 and the preamble. Raises ConnectionError if the client has disconnected."""
        transport = self._request.transport
        if not isinstance(transport, asyncio.Transport):
            raise ConnectionResetError("the client has disconnected")
        _set_user_timeout(transport)
        if self._chunked:
            self.response.enable_chunked_encoding()
        await self.response.prepare(self._request)
        # The first write sends the headers too; later writes bypass the response object.
        await self.response.write(PREAMBLE)
        self.written_at = asyncio.get_running_loop().time()
        self._transport = transport

    def write(self, piece: SseBatch, now: float) -> None:
        """Write a batch without waiting. Raises ConnectionError if the client has disconnected."""
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the client has disconnected")
        self._transport.write(piece.chunk if self._chunked else piece.text)
        self.written_at = now

    @property
    def full(self) -> bool:
        """Whether the write buffer is above its limit."""
        return self._transport is not None and self._transport.get_write_buffer_size() > MAX_BUFFER_BYTES

    async def drain(self) -> None:
        """Wait until the reader has taken most of the buffer. Raises SlowReader, ConnectionError."""
        try:
            async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
                await self._request.writer.drain()
        except TimeoutError as error:
            # A graceful close would wait for the same full buffer.
            if self._transport is not None:
                self._transport.abort()
            raise SlowReader from error

    def keep_alive(self, now: float) -> bool:
        """Write a keep-alive comment if one is due: traffic for proxies, ignored by readers.

        Return whether the client is still connected.
        """
        if self._transport is None:
            return True
        if self._transport.is_closing():
            return False
        if now - self.written_at >= KEEPALIVE_SECONDS and not self._transport.get_write_buffer_size():
            self.write(KEEPALIVE, now)
        return True
