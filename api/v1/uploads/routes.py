"""Routes of uploads: create an upload, then send the archive to its signed URL."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

from aiohttp import web

from api import errors
from api.http import expect_continue, responses
from api.http.operation import PublicOperation, item_response
from api.http.query import Parameter
from api.routing.endpoint import Endpoint, EndpointCall
from api.services import SERVICES
from api.store.blobs import direct_upload
from api.store.index import uploads
from api.store.index.audit.change import describe
from api.v1 import lookup
from api.v1.uploads import limits, schema, view
from crds import pod_tokens

CONTENT_ROUTE = "upload-content"
CHUNK_BYTES = 256 * 1024
CHUNK_TIMEOUT_SECONDS = 60.0
"""Read timeout between two chunks."""


async def create(call: EndpointCall) -> web.StreamResponse:
    """Create an upload and return its signed URL."""
    services, config = call.services, call.services.config
    project = await lookup.named_project(call, call.body["project"], "project")
    size: int = call.body["size"]
    max_bytes = config.limits.context_bytes
    if size > max_bytes:
        raise errors.HttpApiError(
            413,
            f"an archive can have at most {max_bytes} bytes; exclude files that the crew does not need",
            {"field": "size", "limit_bytes": max_bytes},
        )
    services.store.volume.check_room()
    await limits.check_storage(call, project.name, size)
    now = services.now()
    expires = now + timedelta(seconds=config.upload_ttl)
    name = uploads.new_name()
    describe(project.name, name)
    with limits.counting_refusals(call, project.name):
        row = await services.store.uploads.create(
            project.name,
            size,
            call.body.get("sha256"),
            now,
            expires,
            config.kept_uploads,
            services.store.volume.uploads_bytes_limit(config.limits),
            name,
        )
    token = pod_tokens.mint(
        config.token_key, "upload", config.namespace, row.id, project.uid, int(row.expires_at.timestamp())
    )
    direct = None
    if config.signer is not None:
        remaining_seconds = int((row.expires_at - now).total_seconds())
        direct = config.signer.put(
            direct_upload.incoming_key(row), row.size, row.sha256, now, remaining_seconds
        )
    return responses.item(view.created(row, config.public_url, token, direct), 201, view.content_path(row.id))


async def put_content(request: web.Request) -> web.StreamResponse:
    """Store the bytes of an upload. The signed URL is the permission; no API key needed."""
    services, upload = request.app[SERVICES], request.match_info["id"]
    now = services.now()
    try:
        token = pod_tokens.verify(services.config.token_keys, request.query.get("token", ""), now.timestamp())
    except (pod_tokens.TokenInvalid, ValueError) as error:
        raise _invalid_url_error() from error
    if (token.kind, token.namespace, token.name) != ("upload", services.config.namespace, upload):
        raise _invalid_url_error()
    row = await services.store.uploads.get(upload)
    if row is None:
        raise _invalid_url_error()
    if request.content_length is not None and request.content_length != row.size:
        raise errors.invalid(
            f"the upload was created with size {row.size}, but Content-Length is {request.content_length}",
            "size",
        )
    return responses.item(view.stored(await services.store.receive(upload, _chunks(request), now)))


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    await expect_continue.send_continue(request)
    while True:
        try:
            async with asyncio.timeout(CHUNK_TIMEOUT_SECONDS):
                chunk = await request.content.read(CHUNK_BYTES)
        except TimeoutError as error:
            raise errors.HttpApiError(
                408, f"no data received for {CHUNK_TIMEOUT_SECONDS:.0f} s; send the archive again"
            ) from error
        if not chunk:
            return
        yield chunk


def _invalid_url_error() -> errors.HttpApiError:
    return errors.forbidden(
        "the upload URL is invalid or has expired; create a new one with POST /v1/uploads"
    )


def add_content_route(app: web.Application) -> None:
    """Add the upload route, which needs no API key."""
    app.router.add_route(
        "PUT",
        PUBLIC_OPERATIONS[0].path,
        put_content,
        name=CONTENT_ROUTE,
        expect_handler=expect_continue.defer,
    )


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/uploads",
        create,
        "preview",
        body=schema.CREATE,
        summary="Announce an upload",
        responses=(item_response(schema.CREATED, schema.CREATED_EXAMPLE, 201),),
        error_statuses=(404,),
        example=schema.CREATE_EXAMPLE,
    ),
)
PUBLIC_OPERATIONS = (
    PublicOperation(
        "PUT",
        "/v1/uploads/{id}/content",
        summary="Upload an archive",
        description=(
            "Send the bytes to the `upload_url` from POST /v1/uploads. The signed URL is the permission; "
            "no API key is needed. Sending the same bytes again is allowed."
        ),
        query=(
            Parameter("token", {"type": "string"}, required=True, description="The signature of the URL."),
        ),
        body={"type": "string", "contentMediaType": "application/octet-stream"},
        consumes="application/octet-stream",
        responses=(item_response(schema.STORED, schema.STORED_EXAMPLE, description="The bytes are stored."),),
        error_statuses=(403, 408, 409, 413),
    ),
)
