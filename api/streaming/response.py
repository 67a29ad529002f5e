"""An event stream from its opening to its end, whatever ends it. Called by routes that follow something."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog
from aiohttp import web

from api import errors
from api.routing.endpoint import Call
from api.store.errors import Refused, StoreUnavailable
from api.streaming import connection
from api.streaming.sse import Piece

NO_LONGER = Piece.of(b": the key or token holds no longer\n\n")
"""The last words of a stream whose key ended: who connects again gets the 401. Readers ignore comments."""
_log = structlog.get_logger("api")


async def follow(call: Call, send: Callable[[connection.Stream], Awaitable[None]]) -> web.StreamResponse:
    """Opens a stream, lets `send` fill it, and accounts for it.

    The reader's leaving, its slowness, the service's stop, the end of its key, and that what is followed
    has disappeared or cannot be read, end it quietly: the answer has begun, so there is no other one to
    give, and a reader resumes by its last id. What is followed is never touched.
    """
    services, stream, caller = call.services, connection.Stream(call.request), call.caller
    expires = caller.expires_at
    left = None if expires is None else (expires - services.now()).total_seconds()
    services.streams.enter(caller.session, left, stream)
    services.holders.opened(caller)
    services.metrics.streams.inc()
    try:
        await stream.open()
        await send(stream)
    except (ConnectionError, errors.ApiError, StoreUnavailable, Refused):
        pass
    except connection.SlowReader:
        _log.info("slow_reader_cut", path=call.request.path)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or not services.streams.ended(task):
            raise
        task.uncancel()
        if not services.streams.closing:
            with suppress(ConnectionError):
                stream.put(NO_LONGER, asyncio.get_running_loop().time())
    finally:
        services.streams.leave()
        services.metrics.streams.dec()
    return stream.response
