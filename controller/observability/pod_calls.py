"""Which port serves the calls of build pods. Called by `controller.process`, where they report by TLS."""

from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from internal_tls.ports import refusal


def separate(plain: bool) -> Middleware:
    """Return the middleware that serves the calls of pods, and nothing else, on the TLS port."""

    @web.middleware
    async def middleware(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if (refused := refusal(request.path, request.secure, plain)) is not None:
            return web.json_response({"error": refused.message}, status=refused.status)
        return await handler(request)

    return middleware
