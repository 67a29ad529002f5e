"""A run's events: followed, paged, and its log lines as text."""

import asyncio

from aiohttp import web

from api import answers, media, pagination, sse
from api.endpoint import Call, Endpoint
from api.follow import follow
from api.frames import last_event_id
from api.openapi import streams
from api.routes import seen
from api.translate import events

PAGE = 500
"""Events read and written at once."""


async def get(call: Call) -> web.StreamResponse:
    """The events as a stream, from the first or after Last-Event-ID, to the terminal one; or as a page."""
    run = await seen.run(call)
    if call.media == media.JSON:
        # Ids count from 1 without gaps, so a page's place is its first id.
        asked = call.page
        page = await call.services.store.events.read(run.name, asked.offset, asked.size)
        return answers.page([events.item(event) for event in page.events], page.total, asked)
    after = last_event_id(call.request.headers.get("Last-Event-ID"))
    return await _stream(call, run.name, after)


async def _stream(call: Call, run: str, after: int) -> web.StreamResponse:
    store = call.services.store
    first = await store.events.read(run, after, PAGE)
    if after > first.total:
        # Not an id of this run: nothing must be hidden by it.
        after = 0
        first = await store.events.read(run, after, PAGE)
    if first.ended and not first.events and after:
        return web.Response(status=204)  # EventSource stops here, instead of asking for ever.

    async def send(stream: sse.Stream) -> None:
        page, position, loop = first, after, asyncio.get_running_loop()
        spoke = loop.time()
        while True:
            if page.events:
                await stream.write(events.frames(page.events))
                position, spoke = page.events[-1].id, loop.time()
            if page.ended:
                return
            if not page.events:
                await store.events.wait(run, page.mark, max(0.0, spoke + sse.KEEPALIVE_SECONDS - loop.time()))
                if loop.time() - spoke >= sse.KEEPALIVE_SECONDS:
                    await stream.keep_alive()
                    spoke = loop.time()
            page = await store.events.read(run, position, PAGE)

    return await follow(call, send)


async def logs(call: Call) -> web.StreamResponse:
    """The log lines so far."""
    run = await seen.run(call)
    response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
    await response.prepare(call.request)
    position = 0
    while call.request.method != "HEAD":
        page = await call.services.store.events.read(run.name, position, PAGE)
        if not page.events:
            break
        position = page.events[-1].id
        await response.write(events.lines(page.events).encode(errors="replace"))
    await response.write_eof()
    return response


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/runs/{id}/events",
        get,
        "read",
        query=pagination.PARAMETERS,
        produces=(media.EVENT_STREAM, media.JSON),
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
        produces=(media.TEXT,),
        summary="Read a run's log",
        answers=(streams.RUN_LOG,),
    ),
)
