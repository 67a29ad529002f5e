"""Lifecycle of an event stream response. Called by the streaming routes and by `api.v1.wait`."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog
from aiohttp import web

from api import errors, tenant_limits
from api.http.operation import empty_response
from api.http.query import Parameter
from api.routing import middleware
from api.routing.endpoint import EndpointCall
from api.store.errors import StoreRefused, StoreUnavailable
from api.streaming import connection
from api.streaming.sse import SseBatch

CREDENTIAL_ENDED = SseBatch.of(b": the credential was revoked or has expired\n\n")
"""Last comment of a stream whose credential ended; a reconnect gets a 401. Readers ignore comments."""
LAST_EVENT_ID = Parameter(
    "Last-Event-ID",
    {"type": "string"},
    description="The stream resumes after this id; an unknown id is ignored.",
)
STREAM_FINISHED = empty_response(
    "The stream has ended and has no events after Last-Event-ID: do not reconnect."
)
_log = structlog.get_logger("api")


async def register_stream(
    call: EndpointCall, project: str, stream: connection.EventStream | None = None
) -> None:
    """Register the current task as a stream about a project, and watch the caller's scope there.

    Raises a 429 or 503 at the limits of event streams, a 401 for a key that was revoked meanwhile.
    """
    services, caller = call.services, call.caller
    expires = caller.expires_at
    valid_seconds = None if expires is None else (expires - services.now()).total_seconds()
    # A caller of several projects counts for the first by name, as its requests do.
    counted = min(caller.projects) if caller.projects else ""
    right = (call.scope, project)
    limits = await services.limits_of(counted or None)
    try:
        services.streams.register(
            caller.credential_id, valid_seconds, stream, counted, right, limits.open_streams
        )
    except errors.HttpApiError as error:
        if error.status == 429 and counted:
            services.metrics.limit_reached(tenant_limits.OPEN_STREAMS, counted)
        raise
    call.request[middleware.WAITED] = True
    services.revocation.watch(caller, right)


async def serve_stream(
    call: EndpointCall, project: str, send: Callable[[connection.EventStream], Awaitable[None]]
) -> web.StreamResponse:
    """Open a stream about a project, run `send` on it and keep the registry and metrics up to date.

    A disconnected or slow client, a shutdown, an ended credential, and a deleted or unreadable source end
    the stream without an error: the response has started, and the client resumes by its last id. The
    source is never modified. HEAD gets the headers alone.
    """
    services, stream = call.services, connection.EventStream(call.request)
    if call.request.method == "HEAD":
        return stream.response
    await register_stream(call, project, stream)
    services.metrics.streams.inc()
    try:
        await stream.open()
        await send(stream)
    except (ConnectionError, errors.HttpApiError, StoreUnavailable, StoreRefused):
        pass
    except connection.SlowReader:
        _log.info("slow_reader_cut", path=call.request.path)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or not services.streams.was_ended(task):
            raise
        task.uncancel()
        if not services.streams.closing:
            with suppress(ConnectionError):
                stream.write(CREDENTIAL_ENDED, asyncio.get_running_loop().time())
    finally:
        services.streams.unregister()
        services.metrics.streams.dec()
    return stream.response
