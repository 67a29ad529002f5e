"""Deletes what is left of records that went: artifacts, event logs and their archives, build logs, uploads.

Called by `api.maintenance.loops`. The note of what is left goes last, so each step may be repeated.
"""

from datetime import datetime, timedelta

import structlog

from api.store.errors import StoreUnavailable
from api.store.index.deletion import tombstones
from api.store.index.deletion.expired_records import Left
from api.store.logs.event_archive import folder
from api.store.logs.journal import Damaged
from api.store.store import Store

log = structlog.get_logger()

BATCH = 50
ROWS = 500
"""Rows of artifacts deleted in one transaction."""
LATE = timedelta(days=1)
"""How long an upload stays after its address has expired: somebody may still be sending, or building it."""


async def clear_round(store: Store, limit: int = BATCH) -> int:
    """Deletes what is left of some records; gives of how many. Raises StoreUnavailable if of none."""
    done: list[Left] = []
    trouble = None
    for one in await store.records.left(limit):
        try:
            if one.kind == tombstones.RUN:
                await _clear_run(store, one.name)
            elif "." in one.name or await store.deployments.get(one.name) is None:
                await store.buildlogs.remove(one.name)
            done.append(one)
        except (StoreUnavailable, Damaged) as error:
            log.warning("what is left of a record cannot be deleted", name=one.name, error=str(error))
            trouble = error
    if done:
        await store.records.settle(done)
    elif trouble:
        raise StoreUnavailable(f"nothing that is left can be deleted: {trouble}") from trouble
    return len(done)


async def _clear_run(store: Store, run: str) -> None:
    async for blobs in store.blobs.below(folder(store.namespace, run)):
        for blob in blobs:
            await store.blobs.delete(blob.key)
    while not await store.eventlogs.clear(run):
        pass
    await store.eventlogs.forget(run)
    while not await store.records.shrink_artifacts(run, ROWS):
        pass
    # Whoever still follows it learns that it is gone.
    store.events.turned(run)


async def upload_round(store: Store, now: datetime, limit: int = BATCH) -> int:
    """Deletes uploads that expired, or were built, more than a day ago; gives how many."""
    found = await store.uploads.spend(now - LATE, limit)
    for one in found:
        if one.stored_at is not None:
            await store.blobs.delete(one.blob)
        # Attempts that a killed process left.
        async for blobs in store.blobs.below(f"{store.namespace}/uploads/{one.id}"):
            for blob in blobs:
                await store.blobs.delete(blob.key)
    if found:
        await store.uploads.remove([one.id for one in found])
    return len(found)
