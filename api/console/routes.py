"""Routes of the console's static files under `/console/`, without authentication. Called by `api.app`."""

from aiohttp import web

from api import console, errors
from api.http import ranges
from api.http.operation import PublicOperation, ResponseSpec

PUBLIC_OPERATIONS = (
    PublicOperation(
        "GET",
        "/console/",
        "Open the console",
        "A web page with projects, deployments, runs and keys. It asks for an API key.",
        (
            ResponseSpec(
                200,
                "The page.",
                {"text/html": {"type": "string"}},
                headers=("ETag", "Content-Security-Policy", "Cache-Control"),
            ),
            ResponseSpec(304, "Not modified.", headers=("ETag",)),
        ),
        head=True,
    ),
)
_HEADERS = {
    "Content-Security-Policy": console.POLICY,
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def add_routes(app: web.Application) -> None:
    """Read the files once and serve them; redirect `/` to them."""
    files = console.load_files()

    async def get(request: web.Request) -> web.StreamResponse:
        file = files.get(request.match_info.get("file") or "index.html")
        if file is None:
            raise errors.not_found("console file not found")
        headers = {**_HEADERS, "ETag": file.etag}
        if ranges.etag_matches(request.headers.get("If-None-Match"), file.etag):
            return web.Response(status=304, headers=headers)
        return web.Response(body=file.body, content_type=file.content_type, charset="utf-8", headers=headers)

    async def redirect(_: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "/console/"})

    app.router.add_get("/", redirect)
    app.router.add_get("/console", redirect)
    app.router.add_get("/console/", get)
    app.router.add_get("/console/{file:.+}", get)
