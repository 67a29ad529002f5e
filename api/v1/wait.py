"""Long polls: a request that responds once its object has ended, or after some seconds as it is then.

Wakes by the notifications of the index, never by reading again and again. An open wait counts as an event
stream of its key: the same limits hold, and a shutdown or a revoked key ends it. Called by the routes of
runs and deployments.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from api.http.query import Parameter
from api.routing.endpoint import WAIT_PARAMETER, EndpointCall
from api.routing.stream_response import register_stream
from api.store.index.deployments.deployments import DeploymentRow
from api.store.index.runs.runs import RunDetail

T = TypeVar("T", RunDetail, DeploymentRow)
MAX_WAIT_SECONDS = 60
WAIT = Parameter(
    WAIT_PARAMETER,
    {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_SECONDS},
    description="Respond once it has ended, at the latest after this many seconds.",
)
PREFER_HEADER = "Prefer"
PREFER = Parameter(
    PREFER_HEADER,
    {"type": "string"},
    description=(
        "`wait=SECONDS` (RFC 7240, at most 60): respond once the run has ended, with its outcome; else after "
        "these seconds as it is then."
    ),
)
APPLIED_HEADER = "Preference-Applied"
_PREFERENCE = re.compile(r"(?:^|,)\s*wait\s*=\s*\"?([0-9]{1,6})\"?\s*(?=[;,]|$)", re.ASCII | re.IGNORECASE)


def preferred_seconds(header: str | None) -> int | None:
    """Return the seconds of the preference `wait`, at most 60; None without one. Ignore all others."""
    match = _PREFERENCE.search(header or "")
    return min(int(match[1]), MAX_WAIT_SECONDS) if match else None


async def until(
    call: EndpointCall,
    seconds: int,
    read: Callable[[], Awaitable[T]],
    has_ended: Callable[[T], bool],
    mark: Callable[[], int],
    changed: Callable[[int, float], Awaitable[None]],
) -> T:
    """Return what `read` returns once it has ended, or after `seconds`.

    `changed` waits for a notification after a `mark`, taken before the read. Raises like `read`, and a 429 or
    503 at the limits of event streams.
    """
    services, loop = call.services, asyncio.get_running_loop()
    before = mark()
    value = await read()
    if not seconds or has_ended(value):
        return value
    deadline = loop.time() + seconds
    await register_stream(call, value.project)
    try:
        while not has_ended(value) and not services.streams.closing:
            remaining = deadline - loop.time()
            if remaining <= 0:
                break
            await changed(before, remaining)
            before = mark()
            value = await read()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or not services.streams.was_ended(task):
            raise
        task.uncancel()
    finally:
        services.streams.unregister()
    return value
