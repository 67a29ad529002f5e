"""Record of a change in the audit log, around the work that makes it.

Called by `api.routing.endpoint` and `api.webhooks.routes`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import structlog
from aiohttp import web

from api import errors
from api.routing import middleware
from api.services import ApiServices
from api.store.errors import StoreUnavailable
from api.store.index.audit.change import Change, making
from api.store.store import Store

if TYPE_CHECKING:
    from api.routing.endpoint import EndpointCall

T = TypeVar("T")
_log = structlog.get_logger("api")
_tasks: set[asyncio.Task[None]] = set()


async def serve(
    handler: Callable[["EndpointCall"], Awaitable[web.StreamResponse]], call: "EndpointCall"
) -> web.StreamResponse:
    """Serve a call that may change something."""
    return await make_change(call.request, call.services, call.caller.principal, lambda: handler(call))


async def make_change(
    request: web.Request,
    services: ApiServices,
    actor: str,
    work: Callable[[], Awaitable[T]],
    project: str | None = None,
    target: str | None = None,
) -> T:
    """Do the work of a request; a change that fails after its record gets a second one."""
    change = Change(
        services.now(),
        actor,
        middleware.remote_address(request),
        request.method,
        request.path[:512],
        request[middleware.REQUEST_ID],
        project,
        target,
    )
    with making(change):
        try:
            return await work()
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
