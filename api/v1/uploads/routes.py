"""Uploads: an archive is announced, then sent to a signed address."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

from aiohttp import web

from api import errors
from api.http import expect_continue, responses
from api.http.operation import Open, one
from api.http.query import Parameter
from api.openapi import examples, shapes
from api.routing.endpoint import Call, Endpoint
from api.services import SERVICES
from api.store.blobs import direct_upload
from api.v1 import lookup, schemas
from api.v1.uploads import view
from crds import pod_tokens

CONTENT = "upload-content"
CHUNK = 256 * 1024
CHUNK_SECONDS = 60.0
"""How long a sender may pause."""


async def create(call: Call) -> web.StreamResponse:
    """201 with the signed address."""
    services, config = call.services, call.services.config
    project = await lookup.named_project(call, call.body["project"], "project")
    size: int = call.body["size"]
    most = config.limits.context_bytes
    if size > most:
        raise errors.ApiError(
            413,
            f"an archive may have at most {most} bytes; leave out what the crew does not need",
            {"field": "size", "limit_bytes": most},
        )
    now = services.now()
    expires = now + timedelta(seconds=config.upload_ttl)
    row = await services.store.uploads.create(
        project.name, size, call.body.get("sha256"), now, expires, config.kept_uploads
    )
    token = pod_tokens.mint(
        config.token_key, "upload", config.namespace, row.id, project.uid, int(row.expires_at.timestamp())
    )
    direct = None
    if config.signer is not None:
        left = int((row.expires_at - now).total_seconds())
        direct = config.signer.put(direct_upload.key(row), row.size, row.sha256, now, left)
    return responses.one(view.created(row, config.public_url, token, direct), 201, view.path(row.id))


async def content(request: web.Request) -> web.StreamResponse:
    """Takes the bytes. The address is the permission, so no key is asked for."""
    services, upload = request.app[SERVICES], request.match_info["id"]
    now = services.now()
    try:
        token = pod_tokens.verify(services.config.token_key, request.query.get("token", ""), now.timestamp())
    except (pod_tokens.TokenInvalid, ValueError) as error:
        raise _refused() from error
    if (token.kind, token.namespace, token.name) != ("upload", services.config.namespace, upload):
        raise _refused()
    row = await services.store.uploads.get(upload)
    if row is None:
        raise _refused()
    if request.content_length is not None and request.content_length != row.size:
        raise errors.invalid(
            f"the upload was announced with {row.size} bytes, but Content-Length is {request.content_length}",
            "size",
        )
    return responses.one(view.stored(await services.store.receive(upload, _chunks(request), now)))


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    await expect_continue.ask(request)
    while True:
        try:
            async with asyncio.timeout(CHUNK_SECONDS):
                chunk = await request.content.read(CHUNK)
        except TimeoutError as error:
            raise errors.ApiError(
                408, f"nothing was sent for {CHUNK_SECONDS:.0f} s; send it again"
            ) from error
        if not chunk:
            return
        yield chunk


def _refused() -> errors.ApiError:
    return errors.forbidden(
        "this upload address does not hold, or no longer; ask for a new one with POST /v1/uploads"
    )


def mount_content(app: web.Application) -> None:
    """Adds the one operation that needs no key."""
    app.router.add_route("PUT", OPEN[0].path, content, name=CONTENT, expect_handler=expect_continue.later)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/uploads",
        create,
        "deploy",
        body=schemas.UPLOAD_CREATE,
        summary="Announce an upload",
        answers=(one(shapes.UPLOAD, examples.UPLOAD, 201),),
        refusals=(404,),
        example=examples.UPLOAD_CREATE,
    ),
)
OPEN = (
    Open(
        "PUT",
        "/v1/uploads/{id}/content",
        summary="Upload an archive",
        description=(
            "Sends the bytes to the `upload_url` that POST /v1/uploads gave; the address is the permission, "
            "so no key is asked for. The same bytes again are fine."
        ),
        query=(
            Parameter("token", {"type": "string"}, required=True, description="The address's signature."),
        ),
        body={"type": "string", "contentMediaType": "application/octet-stream"},
        takes="application/octet-stream",
        answers=(one(shapes.UPLOAD_STORED, examples.UPLOAD_STORED, description="The bytes are stored."),),
        refusals=(403, 408, 409, 413),
    ),
)
