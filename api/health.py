"""Whether the facade lives, and whether it can serve; for the probes of its pod, and /metrics."""

import asyncio
import time

from aiohttp import web

from api import errors
from api.http import negotiation
from api.http.operation import Answer, Open
from api.services import SERVICES
from api.store.errors import StoreUnavailable

READY_SECONDS = 3.0
CATCH_UP_SECONDS = 10.0
"""How long the first look at the cluster is waited for; without an apiserver, what is stored is served."""
STARTED = web.AppKey("started", float)


async def healthz(request: web.Request) -> web.StreamResponse:
    """200 while the process answers."""
    return web.json_response({"status": "ok"})


async def readyz(request: web.Request) -> web.StreamResponse:
    """200 if the store can be read and written, and has caught up with the cluster if that is there."""
    services = request.app[SERVICES]
    try:
        async with asyncio.timeout(READY_SECONDS):
            await services.store.ready()
    except (StoreUnavailable, TimeoutError) as error:
        raise errors.unavailable("the index cannot be read or written") from error
    if not services.caught_up() and time.monotonic() - request.app[STARTED] < CATCH_UP_SECONDS:
        raise errors.unavailable("what lives in the cluster is still being read")
    return web.json_response({"status": "ready"})


async def metrics(request: web.Request) -> web.StreamResponse:
    """Everything that is counted, in Prometheus' text format."""
    text = request.app[SERVICES].metrics.text()
    return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


def mount(app: web.Application) -> None:
    """Adds the three."""
    app[STARTED] = time.monotonic()
    for operation, handler in zip(OPEN, (healthz, readyz, metrics), strict=True):
        app.router.add_get(operation.path, handler)


_STATUS = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"type": "string"}},
    "additionalProperties": False,
}
OPEN = (
    Open(
        "GET",
        "/healthz",
        "Ask for life",
        "200 while the process answers.",
        (Answer(200, "It lives.", {negotiation.JSON: _STATUS}),),
        head=True,
    ),
    Open(
        "GET",
        "/readyz",
        "Ask for readiness",
        "200 if the store can be read and written and the cluster's objects were read.",
        (Answer(200, "It is ready.", {negotiation.JSON: _STATUS}),),
        (503,),
        head=True,
    ),
    Open(
        "GET",
        "/metrics",
        "Read the metrics",
        "Everything that is counted, in Prometheus' text format.",
        (Answer(200, "The metrics.", {negotiation.TEXT: {"type": "string"}}),),
        head=True,
    ),
)
