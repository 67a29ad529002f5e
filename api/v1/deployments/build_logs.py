"""Build logs: as text, or followed line by line while the build goes on."""

import asyncio

from aiohttp import web

from api.http import negotiation
from api.openapi import streams
from api.routing.endpoint import Call, Endpoint
from api.store.index.deployments import DeploymentRow
from api.streaming import connection
from api.streaming.fanout import LOOK_SECONDS
from api.streaming.response import follow
from api.streaming.sse import Piece, frame, pieces
from api.v1 import lookup
from api.v1.deployments import build_log_lines
from crds import names

PAGE = 200
"""Chunks read at once."""
END = "end"


def _over(row: DeploymentRow) -> bool:
    return row.status not in ("pending", "building")


async def get(call: Call) -> web.StreamResponse:
    """The log so far as text, or from its beginning to the build's end as a stream."""
    row = await lookup.deployment(call)
    if call.media == negotiation.EVENT_STREAM:
        return await _follow(call, row)
    response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
    await response.prepare(call.request)
    position, logs = 0, call.services.store.buildlogs
    key = await logs.key(row.name, row.uid)
    while call.request.method != "HEAD":
        page = await logs.read(key, position, PAGE)
        if page.next == position:
            break
        position = page.next
        await response.write(page.text.encode(errors="replace"))
    await response.write_eof()
    return response


async def _follow(call: Call, row: DeploymentRow) -> web.StreamResponse:
    """`log` messages, a line each, then one `end` with the deployment's status.

    A line's id says up to where the log was given, so that a reader resumes after exactly that line.
    """
    header = (call.request.headers.get("Last-Event-ID") or "").strip()
    if header == END and _over(row):
        return web.Response(status=204)
    place, logs = build_log_lines.place(header), call.services.store.buildlogs
    key = await logs.key(row.name, row.uid)
    known = (await logs.read(key, place.start, PAGE)).text
    if len(known) < place.given or (place.start and not (await logs.read(key, place.start - 1, 1)).text):
        place = build_log_lines.BEGIN  # Not an id of this log: nothing must be hidden by it.
    return await follow(call, lambda stream: _send(call, row, key, place, stream))


async def _send(
    call: Call, row: DeploymentRow, key: str, place: build_log_lines.Place, stream: connection.Stream
) -> None:
    """Reads as the reader takes; while it waits for its reader it holds nothing but its place."""
    store, loop, text = call.services.store, asyncio.get_running_loop(), build_log_lines.Lines(place)
    while True:
        changed = store.deployments.mark()
        uid, row = row.uid, await lookup.deployment(call, names.id_of(row.name))
        if row.uid != uid:
            return  # Made again under its name: who connects again reads the new one's log.
        # Looked at before reading: what was written until the build's end is read below.
        over = _over(row)
        page = await store.buildlogs.read(key, text.start, PAGE)
        moved, written = page.next > text.start, page.mark
        found = text.feed(page.text, page.next)
        ended = over and not moved
        if ended:
            found += text.end()
        for piece in pieces(frame("log", line.data, line.place.id) for line in found):
            stream.put(piece, loop.time())
            place = found[piece.last - 1].place
            if stream.full:
                break
        else:
            if ended:
                stream.put(Piece.of(frame(END, _status(row), END)), loop.time())
                return
        del page, found
        if stream.full:
            text = build_log_lines.Lines(place)
            await stream.drained()
        elif not moved:
            await _wait(call, key, written, changed)


async def _wait(call: Call, key: str, written: int, changed: int) -> None:
    """Until there is more text or another status; not for ever, since a ring between replicas may be lost."""
    store = call.services.store
    waits = [
        asyncio.ensure_future(store.buildlogs.wait(key, written, LOOK_SECONDS)),
        asyncio.ensure_future(store.deployments.wait(changed, LOOK_SECONDS)),
    ]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _status(row: DeploymentRow) -> dict[str, object]:
    return {"status": row.status, **({"error": dict(row.error)} if row.error else {})}


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/deployments/{id}/logs",
        get,
        "read",
        produces=(negotiation.TEXT, negotiation.EVENT_STREAM),
        headers=(streams.LAST_EVENT_ID,),
        summary="Read or follow a build log",
        answers=(streams.BUILD_LOG, streams.OVER),
    ),
)
