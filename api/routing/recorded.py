"""Record of a change in the audit log, around the handler that makes it. Called by `api.routing.endpoint`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from api import errors
from api.routing import middleware
from api.store.errors import StoreUnavailable
from api.store.index.audit.change import Change, making
from api.store.store import Store

if TYPE_CHECKING:
    from api.routing.endpoint import EndpointCall

_log = structlog.get_logger("api")
_tasks: set[asyncio.Task[None]] = set()


async def serve(
    handler: Callable[["EndpointCall"], Awaitable[web.StreamResponse]], call: "EndpointCall"
) -> web.StreamResponse:
    """Serve a call that may change something; a change that fails after its record gets a second one."""
    request, services = call.request, call.services
    change = Change(
        services.now(),
        call.caller.principal,
        middleware.remote_address(request),
        request.method,
        request.path[:512],
        request[middleware.REQUEST_ID],
    )
    with making(change):
        try:
            return await handler(call)
        except Exception as error:
            # What never wrote anything changed nothing.
            if change.recorded:
                await _record_failure(services.store, change, _code(error))
            raise
        except asyncio.CancelledError:
            if change.recorded:
                task = asyncio.create_task(_record_failure(services.store, change, "client_closed_request"))
                _tasks.add(task)
                task.add_done_callback(_tasks.discard)
            raise


def _code(error: Exception) -> str:
    return error.code if isinstance(error, errors.HttpApiError) else type(error).__name__


async def _record_failure(store: Store, change: Change, code: str) -> None:
    """Record it if the store can; the first record stays in any case."""
    try:
        await store.audit.record_failure(change, code)
    except StoreUnavailable as error:
        _log.warning("audit_failure_not_recorded", request_id=change.request_id, error=str(error))
