"""Runs that were refused with 503 while nobody could tell whether they are kept: taken back later.

Called by `api.v1.runs.create`. Without this the completion of what a crash left half done would make a run that its
caller was told to try again.
"""

import asyncio
from datetime import datetime

import structlog

from api.store.errors import StoreUnavailable
from api.store.store import Store

log = structlog.get_logger()

PAUSE = 0.5
SECONDS = 120.0
"""For how long a store that is away is asked again; then the row stands, and its run is made."""
MOST = 1000
"""Runs waited for at once."""
_waiting: set[asyncio.Task[None]] = set()


def later(store: Store, run: str, now: datetime) -> None:
    """Withdraws the run in the background, unless its object was seen."""
    if len(_waiting) >= MOST:
        log.warning("a refused run may be made all the same", run=run)
        return
    task = asyncio.create_task(_withdraw(store, run, now), name=f"withdraw {run}")
    _waiting.add(task)
    task.add_done_callback(_waiting.discard)


async def _withdraw(store: Store, run: str, now: datetime) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + SECONDS
    while loop.time() < end:
        try:
            if await store.runs.withdraw(run, now, gone=False):
                log.info("a refused run was kept, and is withdrawn", run=run)
        except StoreUnavailable:
            await asyncio.sleep(PAUSE)
        else:
            return
    log.warning("a refused run may be made all the same", run=run)
