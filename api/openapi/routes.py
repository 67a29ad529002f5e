"""Serves the OpenAPI document at /openapi.json and as a page at /docs. Called by `api.app`."""

import functools
import hashlib

from aiohttp import web

from api import health, pages
from api.console import routes as console
from api.http import negotiation, ranges
from api.http.json_encoding import encode
from api.http.operation import PublicOperation, ResponseSpec
from api.openapi.document import document
from api.v1.endpoints import ENDPOINTS
from api.v1.uploads import routes as uploads
from api.webhooks import routes as webhooks

PUBLIC_OPERATIONS = (
    *health.PUBLIC_OPERATIONS,
    *uploads.PUBLIC_OPERATIONS,
    *webhooks.PUBLIC_OPERATIONS,
    *console.PUBLIC_OPERATIONS,
    PublicOperation(
        "GET",
        "/openapi.json",
        "Read this description",
        "This document.",
        (
            ResponseSpec(
                200,
                "The document.",
                {negotiation.JSON: {"type": "object"}},
                headers=("ETag", "Cache-Control"),
            ),
            ResponseSpec(304, "Not modified.", headers=("ETag",)),
        ),
        head=True,
    ),
    PublicOperation(
        "GET",
        "/docs",
        "Read the documentation",
        "This document as an HTML page.",
        (
            ResponseSpec(
                200,
                "The page.",
                {"text/html": {"type": "string"}},
                headers=("Content-Security-Policy", "Cache-Control"),
            ),
        ),
        head=True,
    ),
)
"""Operations that require no key."""
OPERATIONS = (*ENDPOINTS, *PUBLIC_OPERATIONS)


@functools.lru_cache(maxsize=4)
def _encoded_document(public_url: str) -> bytes:
    return encode(document(OPERATIONS, public_url))


def mount(app: web.Application, public_url: str) -> None:
    """Add the routes of the document and its page."""
    body = _encoded_document(public_url)
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'

    async def get(request: web.Request) -> web.StreamResponse:
        headers = {"ETag": etag, "Cache-Control": "no-cache"}
        if ranges.etag_matches(request.headers.get("If-None-Match"), etag):
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type=negotiation.JSON, headers=headers)

    page = pages.load("docs.html")

    async def docs(_: web.Request) -> web.StreamResponse:
        headers = {
            "Content-Security-Policy": page.policy,
            "Cache-Control": "no-cache",
            "Referrer-Policy": "no-referrer",
        }
        return web.Response(body=page.body, content_type="text/html", charset="utf-8", headers=headers)

    app.router.add_get("/openapi.json", get)
    app.router.add_get("/docs", docs)
