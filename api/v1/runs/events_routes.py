"""A run's events: followed, paged, and its log lines as text."""

import asyncio

from aiohttp import web

from api.http import negotiation, pagination, responses
from api.openapi import streams
from api.routing.endpoint import Call, Endpoint
from api.streaming import connection
from api.streaming.response import follow
from api.streaming.sse import last_event_id, pieces
from api.v1 import lookup
from api.v1.runs import events_view

PAGE = 500
"""Events read and written at once."""


async def get(call: Call) -> web.StreamResponse:
    """The events as a stream, from the first or after Last-Event-ID, to the terminal one; or as a page."""
    run = await lookup.run(call)
    if call.media == negotiation.JSON:
        # Ids count from 1 without gaps, so a page's place is its first id.
        asked = call.page
        page = await call.services.store.events.read(run.name, asked.offset, asked.size)
        return responses.page([events_view.item(event) for event in page.events], page.total, asked)
    after = last_event_id(call.request.headers.get("Last-Event-ID"))
    return await _stream(call, run.name, after)


async def _stream(call: Call, run: str, after: int) -> web.StreamResponse:
    store = call.services.store
    first = await store.events.read(run, after, 1)
    if after > first.total:
        # Not an id of this run: nothing must be hidden by it.
        after = 0
    elif first.ended and not first.events and after:
        return web.Response(status=204)  # EventSource stops here, instead of asking for ever.
    return await follow(call, lambda stream: _send(call, run, after, stream))


async def _send(call: Call, run: str, position: int, stream: connection.Stream) -> None:
    """Reads as the reader takes; at the end of what there is, the run's feed gives what comes.

    While it waits for its reader a stream holds nothing but its position.
    """
    services, limit, loop = call.services, PAGE, asyncio.get_running_loop()
    while True:
        page = await services.store.events.read(run, position, limit)
        mark, more, begun = page.mark, bool(page.events), position
        for piece in pieces(events_view.frames(page.events), position):
            stream.put(piece, loop.time())
            position = piece.last
            if stream.full:
                break
        else:
            if page.ended:
                return
        del page
        over = False
        if not more:
            position, over = await services.feeds.follow(run, position, mark, stream)
        if over:
            return
        if stream.full:
            # Few are read for a reader that takes few.
            limit = max(1, position - begun)
            await stream.drained()
        else:
            limit = min(PAGE, 2 * limit)


async def logs(call: Call) -> web.StreamResponse:
    """The log lines so far."""
    run = await lookup.run(call)
    response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
    await response.prepare(call.request)
    position = 0
    while call.request.method != "HEAD":
        page = await call.services.store.events.read(run.name, position, PAGE)
        if not page.events:
            break
        position = page.events[-1].id
        await response.write(events_view.lines(page.events).encode(errors="replace"))
    await response.write_eof()
    return response


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/runs/{id}/events",
        get,
        "read",
        query=pagination.PARAMETERS,
        produces=(negotiation.EVENT_STREAM, negotiation.JSON),
        head=False,
        headers=(streams.LAST_EVENT_ID,),
        summary="Follow or list events",
        answers=(streams.EVENTS, streams.OVER),
    ),
    Endpoint(
        "GET",
        "/v1/runs/{id}/logs",
        logs,
        "read",
        produces=(negotiation.TEXT,),
        summary="Read a run's log",
        answers=(streams.RUN_LOG,),
    ),
)
