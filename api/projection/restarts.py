"""Restarts of loops that must not end. Called by `api.maintenance.loops` and `api.internal.warm.pods`."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger()

MAX_BACKOFF_SECONDS = 30.0
HEALTHY_AFTER_SECONDS = 60.0
"""Seconds after which a loop that ran counts as healthy again."""
LoopBody = Callable[[], Awaitable[None]]


async def run_forever(
    name: str, body: LoopBody, on_failure: Callable[[str], None] = lambda work: None
) -> None:
    """Restart a failed loop with exponential back-off and report each failure to `on_failure`."""
    backoff = 0.5
    while True:
        started = time.monotonic()
        try:
            await body()
        except Exception:
            log.exception("background work failed", work=name)
            # A metric's label: it names no namespace.
            on_failure(name.partition("@")[0])
        backoff = (
            0.5
            if time.monotonic() - started > HEALTHY_AFTER_SECONDS
            else min(backoff * 2, MAX_BACKOFF_SECONDS)
        )
        await asyncio.sleep(backoff)
