"""Garbage collection of deleted records: artifacts, event logs and their archives, build logs, uploads.

Called by `api.maintenance.maintenance_round`. The tombstone is deleted last, so every step can be repeated.
"""

from datetime import datetime, timedelta

import structlog

from api.store.errors import StoreUnavailable
from api.store.index.deletion import tombstones
from api.store.index.deletion.expired_records import Remains
from api.store.logs.event_archive import folder
from api.store.logs.journal import JournalDamaged
from api.store.store import Store

log = structlog.get_logger()

BATCH_SIZE = 50
ARTIFACT_ROWS_PER_TRANSACTION = 500
"""Artifact rows deleted in one transaction."""
EXPIRED_UPLOAD_GRACE = timedelta(days=1)
"""How long an upload is kept after its URL expired: a client may still send it, or a pod build it."""


async def delete_garbage(store: Store, limit: int = BATCH_SIZE) -> int:
    """Delete the data of some deleted records and return their number.

    Raises StoreUnavailable if none succeeds.
    """
    done: list[Remains] = []
    failure = None
    for record in await store.expired_records.list_remains(limit):
        try:
            if record.kind == tombstones.RUN:
                await _delete_run_data(store, record.name)
            elif "." in record.name or await store.deployments.get(record.name) is None:
                await store.build_logs.remove(record.name)
            done.append(record)
        except (StoreUnavailable, JournalDamaged) as error:
            log.warning("garbage of a record not deleted", name=record.name, error=str(error))
            failure = error
    if done:
        await store.expired_records.delete_remains(done)
    elif failure:
        raise StoreUnavailable(f"no garbage can be deleted: {failure}") from failure
    return len(done)


async def _delete_run_data(store: Store, run: str) -> None:
    async for blobs in store.blobs.list_folder(folder(store.namespace, run)):
        for blob in blobs:
            await store.blobs.delete(blob.key)
    while not await store.event_logs.clear(run):
        pass
    await store.event_logs.delete(run)
    while not await store.expired_records.delete_artifact_batch(run, ARTIFACT_ROWS_PER_TRANSACTION):
        pass
    # SSE subscribers of the run learn that it is deleted.
    store.events.notify_state_changed(run)


async def delete_expired_uploads(store: Store, now: datetime, limit: int = BATCH_SIZE) -> int:
    """Delete uploads that expired, or were built, more than a day ago, and return their number."""
    uploads = await store.uploads.expire(now - EXPIRED_UPLOAD_GRACE, limit)
    for upload in uploads:
        if upload.stored_at is not None:
            await store.blobs.delete(upload.blob)
        # Partial uploads of a killed process.
        async for blobs in store.blobs.list_folder(f"{store.namespace}/uploads/{upload.id}"):
            for blob in blobs:
                await store.blobs.delete(blob.key)
    if uploads:
        await store.uploads.remove([upload.id for upload in uploads])
    return len(uploads)
