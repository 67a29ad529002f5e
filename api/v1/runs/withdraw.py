"""Compensation: withdraws runs whose creation returned 503 although their row may have been stored.

Called by `api.v1.runs.create`. Without it, `api.projection.recover` would create a run that the client
retries as well.
"""

import asyncio
from datetime import datetime

import structlog

from api.store.errors import StoreUnavailable
from api.store.store import Store

log = structlog.get_logger()

RETRY_SECONDS = 0.5
WITHDRAW_TIMEOUT_SECONDS = 120.0
"""Time limit of retries while the store is unavailable; after it the row stays and its run is created."""
MAX_PENDING_WITHDRAWALS = 1000
"""Limit of parallel pending withdrawals."""
_tasks: set[asyncio.Task[None]] = set()


def withdraw_later(store: Store, run: str, now: datetime) -> None:
    """Withdraw the run in the background, unless its object exists."""
    if len(_tasks) >= MAX_PENDING_WITHDRAWALS:
        log.warning("run not withdrawn after 503, may still be created", run=run)
        return
    task = asyncio.create_task(_withdraw(store, run, now), name=f"withdraw {run}")
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def _withdraw(store: Store, run: str, now: datetime) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + WITHDRAW_TIMEOUT_SECONDS
    while loop.time() < deadline:
        try:
            if await store.runs.withdraw(run, now, object_absent=False):
                log.info("run withdrawn after 503", run=run)
        except StoreUnavailable:
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return
    log.warning("run not withdrawn after 503, may still be created", run=run)
