"""The API's description: /openapi.json for programs, /docs for people. Called by `api.app`."""

import hashlib

from aiohttp import web

from api import health, pages
from api.console import routes as console
from api.http import negotiation
from api.http.json_encoding import encode
from api.http.operation import Answer, Open
from api.openapi.document import document
from api.v1.endpoints import ENDPOINTS
from api.v1.uploads import routes as uploads
from api.webhooks import routes as webhooks

OPEN = (
    *health.OPEN,
    *uploads.OPEN,
    *webhooks.OPEN,
    *console.OPEN,
    Open(
        "GET",
        "/openapi.json",
        "Read this description",
        "This document.",
        (
            Answer(
                200,
                "The document.",
                {negotiation.JSON: {"type": "object"}},
                headers=("ETag", "Cache-Control"),
            ),
            Answer(304, "The caller has this document.", headers=("ETag",)),
        ),
        head=True,
    ),
    Open(
        "GET",
        "/docs",
        "Read the documentation",
        "This document as a page.",
        (
            Answer(
                200,
                "The page.",
                {"text/html": {"type": "string"}},
                headers=("Content-Security-Policy", "Cache-Control"),
            ),
        ),
        head=True,
    ),
)
"""Operations that ask for no key."""
OPERATIONS = (*ENDPOINTS, *OPEN)


def mount(app: web.Application, public_url: str) -> None:
    """Makes the document once and serves it, and the page that shows it."""
    body = encode(document(OPERATIONS, public_url))
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'

    async def get(request: web.Request) -> web.StreamResponse:
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match") == tag:
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
