"""Server-Sent Events: a stream that writes the frames of `api.frames`.

The stream is written here rather than by a library because keep-alives come from
the loop that waits for events anyway: an idle stream costs no task of its own, and
a burst of events is one write. Called by the routes that follow something (a run's
events, a build's log).
"""

import asyncio
import socket
from collections.abc import Iterable

from aiohttp import web

KEEPALIVE_SECONDS = 15.0
RETRY_MILLISECONDS = 2000
SEND_SECONDS = 30.0
"""How long a reader may leave a write standing; then it is cut off, and resumes by its last id."""
WRITE_BYTES = 256 * 1024
KEEPALIVE = b": keepalive\n\n"
PREAMBLE = f"retry: {RETRY_MILLISECONDS}\n\n".encode()


def _bound_silence(request: web.Request) -> None:
    """Lets the kernel end a connection whose other side vanished and acknowledges nothing."""
    connection = request.transport.get_extra_info("socket") if request.transport is not None else None
    option = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux has it.
    if connection is not None and option and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, option, int(1000 * (SEND_SECONDS + KEEPALIVE_SECONDS)))


class SlowReader(Exception):
    """The reader took nothing for too long and was cut off."""


class Stream:
    """An open event stream. Nothing is queued: the source is read as fast as the reader reads."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self.response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
            }
        )

    async def open(self) -> None:
        """Answers 200 and the preamble."""
        _bound_silence(self._request)
        await self.response.prepare(self._request)
        await self.write((PREAMBLE,))

    async def write(self, frames: Iterable[bytes]) -> None:
        """Sends frames, many in one write. Raises SlowReader; ConnectionError where the reader has gone."""
        batch = bytearray()
        for frame in frames:
            batch += frame
            if len(batch) >= WRITE_BYTES:
                await self._send(bytes(batch))
                batch.clear()
        if batch:
            await self._send(bytes(batch))

    async def _send(self, data: bytes) -> None:
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self.response.write(data)
        except TimeoutError as error:
            # A graceful end would wait for the same full buffer.
            if self._request.transport is not None:
                self._request.transport.abort()
            raise SlowReader from error

    async def keep_alive(self) -> None:
        """Sends a comment, which proxies see as traffic and readers ignore."""
        await self.write((KEEPALIVE,))
