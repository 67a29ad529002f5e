"""Wait for the status of a deployment that a request has changed. Called by the routes of deployments."""

import asyncio
from collections.abc import Callable

from api.routing.endpoint import EndpointCall
from api.store.index.deployments.deployments import DeploymentRow
from api.v1 import lookup
from crds import names


async def wait_until(
    call: EndpointCall, row: DeploymentRow, condition: Callable[[DeploymentRow], bool], seconds: float
) -> DeploymentRow:
    """Return the row once it meets `condition`, or as it is after `seconds`. Raises 404 if it is deleted."""
    store, loop = call.services.store, asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        # Take the mark before the read, so a change after the read ends the wait immediately.
        mark = store.deployments.mark()
        row = await lookup.deployment(call, names.id_of(row.name))
        remaining = deadline - loop.time()
        if condition(row) or remaining <= 0:
            return row
        await store.deployments.wait(mark, remaining)
