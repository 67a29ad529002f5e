"""`/console/`: the console's files. The address alone asks for no key; what they show does."""

from aiohttp import web

from api import console, errors
from api.http.operation import Answer, Open

OPEN = (
    Open(
        "GET",
        "/console/",
        "Open the console",
        "A page for people: projects, deployments, runs and keys. It asks for an API key.",
        (
            Answer(
                200,
                "The page.",
                {"text/html": {"type": "string"}},
                headers=("ETag", "Content-Security-Policy", "Cache-Control"),
            ),
            Answer(304, "The caller has it.", headers=("ETag",)),
        ),
        head=True,
    ),
)
PARTS = frozenset({"/", "/console", "/console/{file}"})
"""Paths that are no calls: what leads to the page, and what it is made of."""
_HEADERS = {
    "Content-Security-Policy": console.POLICY,
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def mount(app: web.Application) -> None:
    """Reads the files once and serves them; `/` leads there."""
    files = console.load()

    async def get(request: web.Request) -> web.StreamResponse:
        file = files.get(request.match_info.get("file") or "index.html")
        if file is None:
            raise errors.not_found("the console has no such file")
        headers = {**_HEADERS, "ETag": file.tag}
        if request.headers.get("If-None-Match") == file.tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=file.body, content_type=file.content_type, charset="utf-8", headers=headers)

    async def lead(_: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "/console/"})

    app.router.add_get("/", lead)
    app.router.add_get("/console", lead)
    app.router.add_get("/console/", get)
    app.router.add_get("/console/{file}", get)
