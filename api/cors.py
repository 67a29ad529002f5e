"""Cross-origin requests of browsers (CORS), from the origins of the setting. Installed by `api.app`.

The bearer in the header Authorization stays the permission: the service has no cookies, and no response
allows credentials.
"""

import re
from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

_PATHS = ("/v1/", "/openapi.json")
_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
_REQUEST_HEADERS = (
    "Authorization, Content-Type, Idempotency-Key, If-None-Match, If-Range, Last-Event-ID, Prefer, Range, "
    "traceparent, X-Request-Id"
)
_PREFLIGHT_SECONDS = 600
_HOST = re.compile(r"[a-z0-9.-]+(:[0-9]{1,5})?|\[[0-9a-f:]+\](:[0-9]{1,5})?", re.ASCII)


def parse_origins(text: str) -> frozenset[str]:
    """Return the origins of a comma-separated list. Raises ValueError with the correct form."""
    origins = [origin.strip() for origin in text.split(",") if origin.strip()]
    for origin in origins:
        scheme, _, host = origin.partition("://")
        if scheme not in ("http", "https") or not _HOST.fullmatch(host):
            raise ValueError(
                f"{origin!r} is no origin; give scheme, host and port alone, in lower case, such as "
                "https://app.example.com"
            )
    return frozenset(origins)


def preflight(origins: frozenset[str]) -> Middleware:
    """Return the middleware that answers the preflight requests of these origins, without authentication."""

    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        asks = request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
        if not asks or _allowed_origin(request, origins) is None:
            return await handler(request)
        return web.Response(
            status=204,
            headers={
                hdrs.ACCESS_CONTROL_ALLOW_METHODS: _METHODS,
                hdrs.ACCESS_CONTROL_ALLOW_HEADERS: _REQUEST_HEADERS,
                hdrs.ACCESS_CONTROL_MAX_AGE: str(_PREFLIGHT_SECONDS),
            },
        )

    return answer


def add_headers(
    origins: frozenset[str],
) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """Return the signal that lets a page of these origins read a response, errors and streams included."""

    async def add(request: web.Request, response: web.StreamResponse) -> None:
        if not request.path.startswith(_PATHS):
            return
        # A cache must not serve the response of one origin to another.
        response.headers.add(hdrs.VARY, hdrs.ORIGIN)
        if (origin := _allowed_origin(request, origins)) is not None:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = "*"

    return add


def _allowed_origin(request: web.Request, origins: frozenset[str]) -> str | None:
    origin = request.headers.get(hdrs.ORIGIN)
    return origin if origin in origins and request.path.startswith(_PATHS) else None
