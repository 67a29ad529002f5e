"""Which port serves the calls of pods. Called by API server and controller, where pods reach them by TLS."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Middleware

_PREFIX = "/internal/"


@dataclass(frozen=True)
class PortRefusal:
    """Why a port does not serve a path: status and message."""

    status: int
    message: str


def separate(plain: bool, refuse: Callable[[PortRefusal], web.StreamResponse]) -> Middleware:
    """Return the middleware that serves the calls of pods, and nothing else, on the TLS port.

    `refuse` returns the response to all other requests, or raises it.
    """

    @web.middleware
    async def middleware(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if (refused := refusal(request.path, request.secure, plain)) is not None:
            return refuse(refused)
        return await handler(request)

    return middleware


def refusal(path: str, secure: bool, plain: bool) -> PortRefusal | None:
    """Return why this port does not serve a path; `plain`: pods may call without TLS. Pure."""
    if secure:
        if path.startswith(_PREFIX):
            return None
        return PortRefusal(404, "this port serves the calls of pods only; use the address of the API")
    if plain or not path.startswith(_PREFIX):
        return None
    return PortRefusal(
        403,
        "the calls of pods are served by TLS only (CREWYARD_INTERNAL_PLAIN is off); an image from before TLS "
        "needs a new deployment",
    )
