"""Which port serves the calls of pods. Called by `api.app`, where pods reach the API server by TLS."""

from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from api.errors import HttpApiError
from internal_tls.ports import refusal


def separate(plain: bool) -> Middleware:
    """Return the middleware that serves the calls of pods, and nothing else, on the TLS port."""

    @web.middleware
    async def middleware(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if (refused := refusal(request.path, request.secure, plain)) is not None:
            raise HttpApiError(refused.status, refused.message)
        return await handler(request)

    return middleware
