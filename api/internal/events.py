"""`POST /internal/v1/runs/{run}/events`: append a runner's events in their order.

Called by `api.internal.routes`.
"""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from api.internal import event_validation, storage
from api.internal.context import (
    MAX_BODY_BYTES,
    InternalContext,
    PodApiError,
    authenticate_object,
    read_json,
    text_field,
)
from api.store.logs.event_log import NewEvent
from api.tenant_limits import EVENTS

EVENTS_PER_TURN = 50
"""Half a millisecond of the event loop: calls of others wait for one turn, and not for a whole call."""
RUN_NOT_HELD = "this pod does not hold the claim of the run, or the run has ended"


async def parse_in_turns(run: str, body: Mapping[str, Any], now: datetime, max_bytes: int) -> list[NewEvent]:
    """Return the events of a call, and let others run meanwhile. Raises PodApiError 400."""
    events: list[NewEvent] = []
    for number, item in enumerate(event_validation.items_of(body), 1):
        events.append(event_validation.parse_event(run, item, now, max_bytes))
        if number % EVENTS_PER_TURN == 0:
            await asyncio.sleep(0)
    return events


async def append_events(context: InternalContext, request: web.Request) -> web.Response:
    """Store new events and return the greatest number stored. 409 if the pod does not hold the run."""
    run = request.match_info["run"]
    authenticate_object(context, request, "run", run)
    body = await read_json(request)
    pod, nonce = text_field(body, "pod_uid"), text_field(body, "nonce")
    new_events = await parse_in_turns(run, body, datetime.now(UTC), context.config.limits.event_bytes)
    if new_events:
        context.store.volume.check_room()
    project = await context.store.project_storage.project_of(run)
    budget = await storage.event_budget(context, run)
    # Ending the run takes the same lock: nothing is appended after its terminal event has an id.
    async with context.store.events.open_writer(run) as log:
        if not await context.store.claims.holds(run, pod, nonce):
            raise PodApiError(409, RUN_NOT_HELD)
        was_full = log.full
        acknowledged = await log.append(new_events, budget, request.content_length or MAX_BODY_BYTES)
        if project is not None:
            context.store.project_storage.record_log(project, run, log.size_bytes)
        if budget.bytes and log.full and not was_full:
            context.on_limit(EVENTS, project or "")
    if new_events:
        context.store.events.notify_appended(run)
        # Let SSE subscribers run first; a project above its rate waits.
        delay = context.event_pace.delay(project or "", len(new_events), time.monotonic())
        await asyncio.sleep(delay)
    return web.json_response({"acknowledged": acknowledged})
