"""Liveness and readiness probes of the API server, and /metrics. Called by `api.app`."""

import asyncio
import time

from aiohttp import web

from api import errors
from api.http import negotiation
from api.http.operation import PublicOperation, ResponseSpec
from api.services import SERVICES
from api.store.errors import StoreUnavailable

READY_TIMEOUT_SECONDS = 3.0
CATCH_UP_GRACE_SECONDS = 10.0
"""Grace period for the first list of the cluster; without an apiserver, stored data is served after it."""
STARTED_AT = web.AppKey("started", float)


async def healthz(request: web.Request) -> web.StreamResponse:
    """Return 200 while the process responds."""
    return web.json_response({"status": "ok"})


async def readyz(request: web.Request) -> web.StreamResponse:
    """Return 200 if the store is readable and writable and in sync with a reachable cluster."""
    services = request.app[SERVICES]
    try:
        async with asyncio.timeout(READY_TIMEOUT_SECONDS):
            await services.store.ready()
    except (StoreUnavailable, TimeoutError) as error:
        raise errors.unavailable("the index cannot be read or written") from error
    if not services.caught_up() and time.monotonic() - request.app[STARTED_AT] < CATCH_UP_GRACE_SECONDS:
        raise errors.unavailable("the objects of the cluster are still being listed")
    return web.json_response({"status": "ready"})


async def metrics(request: web.Request) -> web.StreamResponse:
    """Return all metrics in the Prometheus text format."""
    text = request.app[SERVICES].metrics.render()
    return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


def mount(app: web.Application) -> None:
    """Add the three routes."""
    app[STARTED_AT] = time.monotonic()
    for operation, handler in zip(PUBLIC_OPERATIONS, (healthz, readyz, metrics), strict=True):
        app.router.add_get(operation.path, handler)


_STATUS = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"type": "string"}},
    "additionalProperties": False,
}
PUBLIC_OPERATIONS = (
    PublicOperation(
        "GET",
        "/healthz",
        "Ask for life",
        "200 while the process responds.",
        (ResponseSpec(200, "The process is alive.", {negotiation.JSON: _STATUS}),),
        head=True,
    ),
    PublicOperation(
        "GET",
        "/readyz",
        "Ask for readiness",
        "200 if the store can be read and written and the objects of the cluster have been listed.",
        (ResponseSpec(200, "The service is ready.", {negotiation.JSON: _STATUS}),),
        (503,),
        head=True,
    ),
    PublicOperation(
        "GET",
        "/metrics",
        "Read the metrics",
        "All metrics in the Prometheus text format.",
        (ResponseSpec(200, "The metrics.", {negotiation.TEXT: {"type": "string"}}),),
        head=True,
    ),
)
