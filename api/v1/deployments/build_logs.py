"""Routes of build logs: as text, or as an event stream while the build runs."""

import asyncio

from aiohttp import web

from api.http import negotiation
from api.http.operation import ResponseSpec
from api.routing import download
from api.routing.endpoint import Endpoint, EndpointCall
from api.routing.stream_response import LAST_EVENT_ID, STREAM_FINISHED, serve_stream
from api.store.index.deployments.deployments import DeploymentRow
from api.streaming import connection
from api.streaming.fanout import POLL_SECONDS
from api.streaming.sse import SseBatch, batches, frame
from api.v1 import lookup
from api.v1.deployments import build_log_lines, schema
from api.v1.fields import SSE, TEXT
from crds import names

CHUNKS_PER_READ = 200
"""Chunks per read."""
END_EVENT = "end"


def _is_finished(row: DeploymentRow) -> bool:
    return row.status not in ("pending", "building")


async def get(call: EndpointCall) -> web.StreamResponse:
    """Return the log so far as text, or stream it from the start to the end of the build."""
    row = await lookup.deployment(call)
    if call.media_type == negotiation.EVENT_STREAM:
        return await _respond_stream(call, row)
    with download.hold_download(call):
        return await _respond_text(call, row)


async def _respond_text(call: EndpointCall, row: DeploymentRow) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
    await response.prepare(call.request)
    position, logs = 0, call.services.store.build_logs
    key = await logs.key(row.name, row.uid)
    while call.request.method != "HEAD":
        page = await logs.read(key, position, CHUNKS_PER_READ)
        if page.next == position:
            break
        position = page.next
        await download.write(call.request, response, page.text.encode(errors="replace"))
    await response.write_eof()
    return response


async def _respond_stream(call: EndpointCall, row: DeploymentRow) -> web.StreamResponse:
    """Stream one `log` message per line, then one `end` message with the deployment's status.

    The id of a line is its position in the log, so a client resumes after exactly that line.
    """
    header = (call.request.headers.get("Last-Event-ID") or "").strip()
    if header == END_EVENT and _is_finished(row):
        return web.Response(status=204)
    position, logs = build_log_lines.parse_position(header), call.services.store.build_logs
    key = await logs.key(row.name, row.uid)
    text = (await logs.read(key, position.start, CHUNKS_PER_READ)).text
    if len(text) < position.consumed or (
        position.start and not (await logs.read(key, position.start - 1, 1)).text
    ):
        position = build_log_lines.START  # Not an id of this log: send all of it.
    return await serve_stream(call, row.project, lambda stream: _send(call, row, key, position, stream))


async def _send(
    call: EndpointCall,
    row: DeploymentRow,
    key: str,
    position: build_log_lines.BuildLogPosition,
    stream: connection.EventStream,
) -> None:
    """Read as fast as the client does. While waiting for the client, keep only the position in memory."""
    store, loop, splitter = (
        call.services.store,
        asyncio.get_running_loop(),
        build_log_lines.BuildLogSplitter(position),
    )
    while True:
        status_mark = store.deployments.mark()
        uid, row = row.uid, await lookup.deployment(call, names.id_of(row.name))
        if row.uid != uid:
            return  # Recreated under the same name: a client that reconnects gets the new log.
        # Check the status before reading the log, so the read includes everything up to the build's end.
        finished = _is_finished(row)
        page = await store.build_logs.read(key, splitter.start, CHUNKS_PER_READ)
        advanced, log_mark = page.next > splitter.start, page.mark
        lines = splitter.feed(page.text, page.next)
        ended = finished and not advanced
        if ended:
            lines += splitter.flush()
        for piece in batches(frame("log", line.data, line.position.id) for line in lines):
            stream.write(piece, loop.time())
            position = lines[piece.last_id - 1].position
            if stream.full:
                break
        else:
            if ended:
                stream.write(SseBatch.of(frame(END_EVENT, _status(row), END_EVENT)), loop.time())
                return
        del page, lines
        if stream.full:
            splitter = build_log_lines.BuildLogSplitter(position)
            await stream.drain()
        elif not advanced:
            await _wait(call, key, log_mark, status_mark)


async def _wait(call: EndpointCall, key: str, log_mark: int, status_mark: int) -> None:
    """Wait for more text or another status, with a timeout: notifications between replicas may be lost."""
    store = call.services.store
    waits = [
        asyncio.ensure_future(store.build_logs.wait(key, log_mark, POLL_SECONDS)),
        asyncio.ensure_future(store.deployments.wait(status_mark, POLL_SECONDS)),
    ]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _status(row: DeploymentRow) -> dict[str, object]:
    return {"status": row.status, **({"error": dict(row.error)} if row.error else {})}


_LOG_RESPONSE = ResponseSpec(
    200,
    "The log so far, or server-sent `log` messages and, after the last, one `end` with the status.",
    {negotiation.TEXT: TEXT, negotiation.EVENT_STREAM: SSE},
    optional_headers=("Cache-Control",),
    examples={negotiation.TEXT: schema.LOG_EXAMPLE},
)
ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/deployments/{id}/logs",
        get,
        "read",
        produces=(negotiation.TEXT, negotiation.EVENT_STREAM),
        headers=(LAST_EVENT_ID,),
        summary="Read or follow a build log",
        responses=(_LOG_RESPONSE, STREAM_FINISHED),
    ),
)
