"""The API's description: /openapi.json. Called by `api.app`."""

import hashlib

from aiohttp import web

from api import health, media
from api.encoding import encode
from api.openapi.document import document
from api.openapi.operation import Answer, Open
from api.routes import ENDPOINTS, uploads

OPEN = (
    *health.OPEN,
    *uploads.OPEN,
    Open(
        "GET",
        "/openapi.json",
        "Read this description",
        "This document.",
        (
            Answer(200, "The document.", {media.JSON: {"type": "object"}}, headers=("ETag", "Cache-Control")),
            Answer(304, "The caller has this document.", headers=("ETag",)),
        ),
        head=True,
    ),
)
"""Operations that ask for no key."""
OPERATIONS = (*ENDPOINTS, *OPEN)


def mount(app: web.Application, public_url: str) -> None:
    """Makes the document once and serves it."""
    body = encode(document(OPERATIONS, public_url))
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'

    async def get(request: web.Request) -> web.StreamResponse:
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type=media.JSON, headers=headers)

    app.router.add_get("/openapi.json", get)
