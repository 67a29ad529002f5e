"""Which port serves the calls of pods. Called by `api.app`, where pods reach the API server by TLS."""

from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from api.errors import HttpApiError

_PREFIX = "/internal/"


def refusal(path: str, secure: bool, plain: bool) -> HttpApiError | None:
    """Return why this port does not serve a path; `plain`: pods may call without TLS. Pure."""
    if secure:
        if path.startswith(_PREFIX):
            return None
        return HttpApiError(404, "this port serves the calls of pods only; use the address of the API")
    if plain or not path.startswith(_PREFIX):
        return None
    return HttpApiError(
        403,
        "the calls of pods are served by TLS only (CREWYARD_INTERNAL_PLAIN is off); an image from before TLS "
        "needs a new deployment",
    )


def separate(plain: bool) -> Middleware:
    """Return the middleware that serves the calls of pods, and nothing else, on the TLS port."""

    @web.middleware
    async def middleware(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if (error := refusal(request.path, request.secure, plain)) is not None:
            raise error
        return await handler(request)

    return middleware
