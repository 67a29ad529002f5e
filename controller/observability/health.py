"""/healthz and /metrics on port 9090. Called by kubelet and Prometheus.

Healthy means that the resync completes, watches are live and no key waits long; a process that
only responds is not healthy.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Middleware
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

MAX_SILENCE_SECONDS = 60.0
"""Maximum age of the last resync and of a ready key."""
MAX_BODY_BYTES = 16384
"""Larger than any valid request to this server."""


@dataclass(frozen=True)
class HealthReadings:
    """State that the probe checks; times in seconds. `resync_age` is None before the first resync.

    A standby, which waits for the Lease, is not `active`: it has no uptime, and nothing to be late with.
    """

    resync_age: float | None
    resync_problem: str
    oldest_ready: float
    missing_watchers: tuple[str, ...]
    uptime: float
    active: bool = True


def problems(readings: HealthReadings) -> list[str]:
    """Return problems as texts; empty if healthy. Pure. The first minute is for starting."""
    texts = []
    age = readings.uptime if readings.resync_age is None else readings.resync_age
    if age > MAX_SILENCE_SECONDS:
        why = readings.resync_problem or "the list takes too long"
        texts.append(f"the last complete resync was {age:.0f} s ago: {why}")
    if readings.oldest_ready > MAX_SILENCE_SECONDS:
        texts.append(f"a key has been waiting for {readings.oldest_ready:.0f} s: workers are stuck")
    if readings.missing_watchers and readings.uptime > MAX_SILENCE_SECONDS:
        texts.append(f"no watch of {', '.join(readings.missing_watchers)}: restart the controller")
    return texts


def application(
    readings: Callable[[], HealthReadings],
    registry: CollectorRegistry,
    extra_routes: Iterable[web.RouteDef] = (),
    middlewares: Iterable[Middleware] = (),
) -> web.Application:
    """Return the web application with both routes and `extra_routes`."""

    async def healthz(_: web.Request) -> web.Response:
        found = problems(readings())
        return web.json_response({"healthy": not found, "problems": found}, status=503 if found else 200)

    async def metrics(request: web.Request) -> web.Response:
        # Exemplars need the format of OpenMetrics, which Prometheus asks for.
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=middlewares)
    app.add_routes([web.get("/healthz", healthz), web.get("/metrics", metrics), *extra_routes])
    return app
