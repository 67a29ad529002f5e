"""/healthz and /metrics on port 9090. Called by kubelet and Prometheus.

Healthy means that work is seen and done: lists are read, watches live, and no
key waits long. A process that only answers is not enough.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

MAX_SILENCE = 60.0
"""Seconds that a list or a ready key may be old."""
MAX_BODY = 16384
"""Bytes; nothing larger is ever sent here."""


@dataclass(frozen=True)
class Vitals:
    """What the probe looks at; times in seconds. `resync_age` is None before the first list."""

    resync_age: float | None
    resync_problem: str
    oldest_ready: float
    missing_watchers: tuple[str, ...]
    uptime: float


def problems(vitals: Vitals) -> list[str]:
    """What is wrong, for people; empty where all is well. Pure. The first minute is for starting."""
    found = []
    age = vitals.uptime if vitals.resync_age is None else vitals.resync_age
    if age > MAX_SILENCE:
        why = vitals.resync_problem or "it takes too long"
        found.append(f"the last complete list is {age:.0f} s ago: {why}")
    if vitals.oldest_ready > MAX_SILENCE:
        found.append(f"a key has been waiting for {vitals.oldest_ready:.0f} s: the workers are stuck")
    if vitals.missing_watchers and vitals.uptime > MAX_SILENCE:
        found.append(f"no watch of {', '.join(vitals.missing_watchers)}: restart the controller")
    return found


def application(
    vitals: Callable[[], Vitals], registry: CollectorRegistry, more: Iterable[web.RouteDef] = ()
) -> web.Application:
    """The web application with both pages, and `more`."""

    async def healthz(_: web.Request) -> web.Response:
        found = problems(vitals())
        return web.json_response({"healthy": not found, "problems": found}, status=503 if found else 200)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application(client_max_size=MAX_BODY)
    app.add_routes([web.get("/healthz", healthz), web.get("/metrics", metrics), *more])
    return app
