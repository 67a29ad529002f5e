"""Artifacts: the files a run left."""

from aiohttp import web

from api import errors
from api.http import negotiation, pagination, ranges, responses
from api.http.operation import page
from api.openapi import examples, shapes, streams
from api.routing.endpoint import Call, Endpoint
from api.store.errors import Missing
from api.store.index.artifacts import ArtifactRow
from api.v1 import lookup
from api.v1.artifacts import view

VERSIONS = 3
"""How many versions are tried, each stored since the one before."""
DIRECT_SECONDS = 300
"""How long an address in the bucket holds; a download that has begun goes on."""


async def many(call: Call) -> web.StreamResponse:
    """The files of a run."""
    run, asked = await lookup.run(call), call.page
    found = await call.services.store.artifacts.page(run.name, asked.offset, asked.size)
    public_url = call.services.config.public_url
    return responses.page([view.item(row, public_url) for row in found.items], found.total, asked)


async def get(call: Call) -> web.StreamResponse:
    """The bytes of a file, whole or a range of them."""
    run = await lookup.run(call)
    row = await _latest(call, run.name)
    for _ in range(VERSIONS):
        try:
            return await _send(call, row)
        except Missing:
            # A crew that writes the file again and again may have replaced it since the row was read.
            before, row = row, await _latest(call, run.name)
            if row.blob == before.blob:
                raise
    raise errors.unavailable("the file is replaced faster than it is read; try again")


async def _latest(call: Call, run: str) -> ArtifactRow:
    name = call.path("artifact")
    row = await call.services.store.artifacts.get(run, name)
    if row is None:
        raise errors.not_found(
            f"the run left no file {name[:200]!r}; GET /v1/runs/{call.path('id')}/artifacts lists them"
        )
    return row


async def _send(call: Call, row: ArtifactRow) -> web.StreamResponse:
    """The answer with this version. Raises Missing, before it has begun, where the bytes are gone."""
    request, headers = call.request, view.headers(row)
    if ranges.matches(request.headers.get("If-None-Match"), view.etag(row)):
        return web.Response(status=304, headers={"ETag": headers["ETag"]})
    direct = _direct(call, row)
    if direct is not None:
        moved = {"Location": direct, "ETag": headers["ETag"], "Cache-Control": "no-store"}
        return web.Response(status=307, headers=moved)
    # A range of another version than the one the caller has is of no use to it (RFC 9110, 13.1.5).
    wanted = request.headers.get("Range") if _same(request, view.etag(row)) else None
    try:
        span = ranges.span(wanted, row.size)
    except ranges.Unsatisfiable as error:
        raise errors.ApiError(
            416,
            f"the file has {row.size} bytes",
            {"size": row.size},
            {"Content-Range": f"bytes */{row.size}"},
        ) from error
    start, end = span or (0, row.size)
    headers["Content-Length"] = str(end - start)
    if span is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{row.size}"
    response = web.StreamResponse(status=206 if span else 200, headers=headers)
    if request.method == "HEAD":
        return response
    chunks = call.services.store.blobs.read(row.blob, start, end)
    # Read before the answer begins, while a failure can still be told.
    first = await anext(chunks, b"") if end > start else b""
    await response.prepare(request)
    await response.write(first)
    async for chunk in chunks:
        await response.write(chunk)
    await response.write_eof()
    return response


def _direct(call: Call, row: ArtifactRow) -> str | None:
    """Where the whole file is read from the bucket itself; ranges go by our validators, so they stay here."""
    signer, request = call.services.config.signer, call.request
    if signer is None or not signer.files or request.method == "HEAD" or "Range" in request.headers:
        return None
    answer = view.headers(row)
    told = {name: answer[name] for name in ("Content-Type", "Content-Disposition", "Cache-Control")}
    return signer.get(row.blob, told, call.services.now(), DIRECT_SECONDS)


def _same(request: web.Request, etag: str) -> bool:
    given = request.headers.get("If-Range")
    return given is None or given.strip() == etag


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/runs/{id}/artifacts",
        many,
        "read",
        query=pagination.PARAMETERS,
        summary="List artifacts",
        answers=(page(shapes.ARTIFACT, examples.ARTIFACT),),
    ),
    Endpoint(
        "GET",
        "/v1/runs/{id}/artifacts/{artifact:(?s:.+)}",
        get,
        "read",
        produces=(negotiation.ANY,),
        headers=streams.FILE_HEADERS,
        summary="Download an artifact",
        answers=streams.FILE,
        refusals=(416,),
    ),
)
