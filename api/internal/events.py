"""`POST /internal/v1/runs/{run}/events`: what a runner says, in the order it says it."""

import asyncio
from datetime import UTC, datetime

from aiohttp import web

from api.internal import event_validation
from api.internal.context import Refusal, Yard, body, text, token

NOT_YOURS = "this pod does not hold the run, or the run has ended"


async def events(yard: Yard, request: web.Request) -> web.Response:
    """Stores what is new and gives the greatest number stored; 409 once the run is not the pod's."""
    run = request.match_info["run"]
    token(yard, request, "run", run)
    sent = await body(request)
    pod, nonce = text(sent, "pod_uid"), text(sent, "nonce")
    found = event_validation.events(run, sent, datetime.now(UTC), yard.config.limits.event_bytes)
    # The end of the run waits for the log too: nothing is appended after its terminal event got an id.
    async with yard.store.events.hold(run) as log:
        if not await yard.store.claims.holds(run, pod, nonce):
            raise Refusal(409, NOT_YOURS)
        acknowledged = await log.say(found)
    if found:
        yard.store.events.told(run)
        # Whoever follows the run is served first: nobody waits for the runner's answer.
        await asyncio.sleep(0)
    return web.json_response({"acknowledged": acknowledged})
