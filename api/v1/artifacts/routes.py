"""Routes of artifacts: list and download the files of a run."""

from aiohttp import web

from api import errors
from api.http import negotiation, pagination, ranges, responses
from api.http.operation import ResponseSpec, page_response
from api.http.query import Parameter
from api.routing import download
from api.routing.endpoint import Endpoint, EndpointCall
from api.store.errors import Missing
from api.store.index.artifacts import ArtifactRow
from api.v1 import lookup
from api.v1.artifacts import schema, view

MAX_VERSIONS_TRIED = 3
"""How many versions a download tries if the crew replaces the file meanwhile."""
DIRECT_URL_TTL_SECONDS = 300
"""Validity of a presigned bucket URL; a download that has started continues after it."""


async def list_artifacts(call: EndpointCall) -> web.StreamResponse:
    """List the files of a run."""
    run, page_request = await lookup.run(call), call.page
    result = await call.services.store.artifacts.page(run.name, page_request.offset, page_request.size)
    public_url = call.services.config.public_url
    return responses.page([view.item(row, public_url) for row in result.items], result.total, page_request)


async def get(call: EndpointCall) -> web.StreamResponse:
    """Return the bytes of a file, or a range of them."""
    run = await lookup.run(call)
    row = await _latest(call, run.name)
    for _ in range(MAX_VERSIONS_TRIED):
        try:
            return await _send(call, row)
        except Missing:
            # The crew may have replaced the file since the row was read.
            previous, row = row, await _latest(call, run.name)
            if row.blob == previous.blob:
                raise
    raise errors.unavailable("the crew replaces the file faster than it can be read; try again")


async def _latest(call: EndpointCall, run: str) -> ArtifactRow:
    name = call.path("artifact")
    row = await call.services.store.artifacts.get(run, name)
    if row is None:
        raise errors.not_found(
            f"the run has no artifact {name[:200]!r}; GET /v1/runs/{call.path('id')}/artifacts lists them"
        )
    return row


async def _send(call: EndpointCall, row: ArtifactRow) -> web.StreamResponse:
    """Send this version. Raises Missing before the response starts if the blob is deleted."""
    request, headers = call.request, view.headers(row)
    if ranges.etag_matches(request.headers.get("If-None-Match"), view.etag(row)):
        return web.Response(status=304, headers={"ETag": headers["ETag"]})
    direct_url = _direct_url(call, row)
    if direct_url is not None:
        redirect_headers = {"Location": direct_url, "ETag": headers["ETag"], "Cache-Control": "no-store"}
        return web.Response(status=307, headers=redirect_headers)
    # Ignore Range if the client has another version (RFC 9110, 13.1.5).
    range_header = request.headers.get("Range") if _if_range_matches(request, view.etag(row)) else None
    try:
        span = ranges.parse_range(range_header, row.size)
    except ranges.RangeNotSatisfiable as error:
        raise errors.HttpApiError(
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
    with download.hold_download(call):
        chunks = call.services.store.blobs.read(row.blob, start, end)
        # Read the first chunk before the response starts, while an error status is still possible.
        first = await anext(chunks, b"") if end > start else b""
        await response.prepare(request)
        await download.write(request, response, first)
        async for chunk in chunks:
            await download.write(request, response, chunk)
        await response.write_eof()
    return response


def _direct_url(call: EndpointCall, row: ArtifactRow) -> str | None:
    """Return the presigned bucket URL of the file. Ranges need the API's ETag, so the API serves them."""
    signer, request = call.services.config.signer, call.request
    if (
        signer is None
        or not signer.direct_downloads
        or request.method == "HEAD"
        or "Range" in request.headers
    ):
        return None
    headers = view.headers(row)
    signed_headers = {
        name: headers[name] for name in ("Content-Type", "Content-Disposition", "Cache-Control")
    }
    return signer.get(row.blob, signed_headers, call.services.now(), DIRECT_URL_TTL_SECONDS)


def _if_range_matches(request: web.Request, etag: str) -> bool:
    if_range = request.headers.get("If-Range")
    return if_range is None or if_range.strip() == etag


_FILE_REQUEST_HEADERS = (
    Parameter("Range", {"type": "string"}, description="One range of bytes, such as bytes=0-1023."),
    Parameter("If-None-Match", {"type": "string"}, description="The ETag of the client's copy."),
    Parameter("If-Range", {"type": "string"}, description="The ETag of the copy that the range continues."),
)
_FILE_HEADERS = ("ETag", "Accept-Ranges", "Content-Disposition", "Cache-Control")
_FILE_RESPONSES = (
    ResponseSpec(200, "The bytes.", {negotiation.ANY: {}}, headers=_FILE_HEADERS),
    ResponseSpec(
        206, "The range of bytes.", {negotiation.ANY: {}}, headers=(*_FILE_HEADERS, "Content-Range")
    ),
    ResponseSpec(
        307,
        "If the installation enables it: the bytes are at this URL of the object store for five "
        "minutes. Send that request without the API key.",
        headers=("Location", "ETag", "Cache-Control"),
    ),
    ResponseSpec(304, "Not modified.", headers=("ETag",)),
)
ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/runs/{id}/artifacts",
        list_artifacts,
        "read",
        query=pagination.PAGE_PARAMETERS,
        summary="List artifacts",
        responses=(page_response(schema.ITEM, schema.EXAMPLE),),
    ),
    Endpoint(
        "GET",
        "/v1/runs/{id}/artifacts/{artifact:(?s:.+)}",
        get,
        "read",
        produces=(negotiation.ANY,),
        headers=_FILE_REQUEST_HEADERS,
        summary="Download an artifact",
        responses=_FILE_RESPONSES,
        error_statuses=(416,),
    ),
)
