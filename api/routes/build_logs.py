"""Build logs: as text, or followed line by line while the build goes on."""

import asyncio

from aiohttp import web

from api import media, sse
from api.endpoint import Call, Endpoint
from api.follow import follow
from api.frames import frame, last_event_id
from api.openapi import streams
from api.routes import seen
from api.store.index.deployments import DeploymentRow
from crds import names

PAGE = 200
"""Chunks read at once."""
END = "end"


def _over(row: DeploymentRow) -> bool:
    return row.status not in ("pending", "building")


async def get(call: Call) -> web.StreamResponse:
    """The log so far as text, or from its beginning to the build's end as a stream."""
    row = await seen.deployment(call)
    if call.media == media.EVENT_STREAM:
        return await _follow(call, row)
    response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
    await response.prepare(call.request)
    position = 0
    while call.request.method != "HEAD":
        page = await call.services.store.buildlogs.read(row.name, position, PAGE)
        if page.next == position:
            break
        position = page.next
        await response.write(page.text.encode(errors="replace"))
    await response.write_eof()
    return response


async def _follow(call: Call, row: DeploymentRow) -> web.StreamResponse:
    """`log` messages, a line each, then one `end` with the deployment's status.

    Ids stand where a line and a chunk end together: a reader that resumes misses nothing.
    """
    header = call.request.headers.get("Last-Event-ID")
    if header is not None and header.strip() == END and _over(row):
        return web.Response(status=204)
    return await follow(call, lambda stream: _send(call, row, last_event_id(header), stream))


async def _send(call: Call, row: DeploymentRow, position: int, stream: sse.Stream) -> None:
    rest, store = "", call.services.store
    while True:
        changed = store.deployments.mark()
        row = await seen.deployment(call, names.id_of(row.name))
        # Looked at before reading: what was written until the build's end is read below.
        over = _over(row)
        page = await store.buildlogs.read(row.name, position, PAGE)
        moved, position = page.next > position, page.next
        *lines, rest = (rest + page.text).split("\n")
        frames = [frame("log", {"message": line}) for line in lines]
        if frames and not rest:
            frames[-1] = frame("log", {"message": lines[-1]}, position)
        if over and not moved:
            frames += [frame("log", {"message": rest})] if rest else []
            await stream.write([*frames, frame(END, _status(row), END)])
            return
        if frames:
            await stream.write(frames)
        if not moved:
            await _wait(call, row, page.mark, changed, stream)


async def _wait(call: Call, row: DeploymentRow, written: int, changed: int, stream: sse.Stream) -> None:
    """Until there is more text or another status, or it is time for a sign of life."""
    store = call.services.store
    waits = [
        asyncio.ensure_future(store.buildlogs.wait(row.name, written, sse.KEEPALIVE_SECONDS)),
        asyncio.ensure_future(store.deployments.wait(changed, sse.KEEPALIVE_SECONDS)),
    ]
    loop = asyncio.get_running_loop()
    started = loop.time()
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    if loop.time() - started >= sse.KEEPALIVE_SECONDS:
        await stream.keep_alive()


def _status(row: DeploymentRow) -> dict[str, object]:
    return {"status": row.status, **({"error": dict(row.error)} if row.error else {})}


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/deployments/{id}/logs",
        get,
        "read",
        produces=(media.TEXT, media.EVENT_STREAM),
        headers=(streams.LAST_EVENT_ID,),
        summary="Read or follow a build log",
        answers=(streams.BUILD_LOG, streams.OVER),
    ),
)
