"""Routes of a run's events: event stream, pages, and the log lines as text."""

import asyncio

from aiohttp import web

from api.http import negotiation, pagination, responses
from api.http.operation import ResponseSpec, page_response
from api.routing import download
from api.routing.endpoint import Endpoint, EndpointCall
from api.routing.stream_response import LAST_EVENT_ID, STREAM_FINISHED, serve_stream
from api.store.logs.events import RunEvent
from api.streaming import connection, run_events
from api.streaming.sse import batches, last_event_id
from api.v1 import lookup
from api.v1.fields import SSE, TEXT
from api.v1.runs import schema

EVENTS_PER_READ = 500
"""Events per read and write."""
FIRST_EVENTS_PER_READ = 16
"""The first of a log as text, and the next after a slow write: events have up to 64 KiB."""
SLOW_WRITE_SECONDS = 1.0


async def get_events(call: EndpointCall) -> web.StreamResponse:
    """Stream the events from the first, or after Last-Event-ID, to the terminal one; or return a page."""
    run = await lookup.run(call)
    if call.media_type == negotiation.JSON:
        return await _respond_page(call, run.name)
    after = last_event_id(call.request.headers.get("Last-Event-ID"))
    return await _respond_stream(call, run.name, run.project, after)


async def _respond_page(call: EndpointCall, run: str) -> web.Response:
    """Return a page. Ids count from 1 without gaps, so its offset is the id before its first event."""
    store, wanted, events = call.services.store, call.page, list[RunEvent]()
    while True:
        page = await store.events.read(run, wanted.offset + len(events), wanted.size - len(events))
        events += page.events
        # A read of large events returns fewer than the page has.
        if not page.events or len(events) >= min(wanted.size, page.total - wanted.offset):
            return responses.page([run_events.item(event) for event in events], page.total, wanted)


async def _respond_stream(call: EndpointCall, run: str, project: str, after: int) -> web.StreamResponse:
    store = call.services.store
    first = await store.events.read(run, after, 1)
    if after > first.total:
        # Not an id of this run: send all events.
        after = 0
    elif first.ended and not first.events and after:
        return web.Response(status=204)  # Makes EventSource stop reconnecting.
    return await serve_stream(call, project, lambda stream: _send(call, run, after, stream))


async def _send(call: EndpointCall, run: str, position: int, stream: connection.EventStream) -> None:
    """Read stored events as fast as the client does, then subscribe to the run's feed.

    While waiting for the client, keep only the position in memory.
    """
    services, limit, loop = call.services, EVENTS_PER_READ, asyncio.get_running_loop()
    while True:
        page = await services.store.events.read(run, position, limit)
        mark, has_events, start = page.mark, bool(page.events), position
        for piece in batches(run_events.frames(page.events), position):
            stream.write(piece, loop.time())
            position = piece.last_id
            if stream.full:
                break
        else:
            if page.ended:
                return
        del page
        finished = False
        if not has_events:
            position, finished = await services.feeds.subscribe(run, position, mark, stream)
        if finished:
            return
        if stream.full:
            # Read less for a slow client.
            limit = max(1, position - start)
            await stream.drain()
        else:
            limit = min(EVENTS_PER_READ, 2 * limit)


async def get_logs(call: EndpointCall) -> web.StreamResponse:
    """Return the log lines so far."""
    run = await lookup.run(call)
    with download.hold_download(call):
        return await _respond_lines(call, run.name)


async def _respond_lines(call: EndpointCall, run: str) -> web.StreamResponse:
    """Send the log lines so far; read more of them at a time only while the client takes them.

    Lines that the crew prints meanwhile are left out: else the response of a busy crew would not end.
    """
    store, loop = call.services.store, asyncio.get_running_loop()
    position, limit, end = 0, FIRST_EVENTS_PER_READ, (await store.events.read(run, 0, 1)).total
    response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
    await response.prepare(call.request)
    while position < end and call.request.method != "HEAD":
        page = await store.events.read(run, position, min(limit, end - position))
        if not page.events:
            break
        position = page.events[-1].id
        lines = run_events.lines(page.events).encode(errors="replace")
        del page
        started = loop.time()
        await download.write(call.request, response, lines)
        slow = loop.time() - started > SLOW_WRITE_SECONDS
        limit = FIRST_EVENTS_PER_READ if slow else min(EVENTS_PER_READ, 2 * limit)
    await response.write_eof()
    return response


_PAGE_RESPONSE = page_response(schema.EVENT, schema.EVENT_EXAMPLE)
_EVENTS_RESPONSE = ResponseSpec(
    200,
    "Server-sent events up to the terminal one, or a page of events, oldest first.",
    {negotiation.EVENT_STREAM: SSE, **_PAGE_RESPONSE.content},
    optional_headers=("Link", "Cache-Control"),
    examples={negotiation.EVENT_STREAM: schema.STREAM_EXAMPLE, **_PAGE_RESPONSE.examples},
)
_LOG_RESPONSE = ResponseSpec(
    200, "The log so far.", {negotiation.TEXT: TEXT}, examples={negotiation.TEXT: schema.LOG_EXAMPLE}
)
ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/runs/{id}/events",
        get_events,
        "read",
        query=pagination.PAGE_PARAMETERS,
        produces=(negotiation.EVENT_STREAM, negotiation.JSON),
        head=False,
        headers=(LAST_EVENT_ID,),
        summary="Follow or list events",
        responses=(_EVENTS_RESPONSE, STREAM_FINISHED),
    ),
    Endpoint(
        "GET",
        "/v1/runs/{id}/logs",
        get_logs,
        "read",
        produces=(negotiation.TEXT,),
        summary="Read a run's log",
        responses=(_LOG_RESPONSE,),
    ),
)
