"""Long responses with a length of their own: logs as text, files. Called by the routes that send them.

A reader that takes no data for half a minute loses its connection, and a caller has a number of downloads at
a time: readers that stop cannot use up the memory.
"""

import asyncio
from contextlib import AbstractContextManager

import structlog
from aiohttp import web

from api.routing.endpoint import EndpointCall
from api.streaming import connection

PIECE_BYTES = 64 * 1024
"""Bytes that a reader must take within the timeout."""
_log = structlog.get_logger("api")


async def write(request: web.Request, response: web.StreamResponse, data: bytes) -> None:
    """Write data as fast as the client reads. Raises ConnectionError if it stops."""
    view = memoryview(data)
    for start in range(0, len(view), PIECE_BYTES):
        try:
            async with asyncio.timeout(connection.SEND_TIMEOUT_SECONDS):
                await response.write(view[start : start + PIECE_BYTES])
        except TimeoutError as error:
            if request.transport is not None:
                # A graceful close would wait for the same full buffer.
                request.transport.abort()
            _log.info("slow_reader_cut", path=request.path[:512])
            raise ConnectionResetError("the client took no data for too long") from error


def hold_download(call: EndpointCall) -> AbstractContextManager[None]:
    """Hold one of the caller's downloads. Entering raises a 429 or a 503."""
    return call.services.downloads.slot(call.caller.credential_id)
