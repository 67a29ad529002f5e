"""Deletion of orphan blobs: blobs whose process ended before it wrote their row.

A blob is deleted a day after it was written if no row refers to it and none can any more: its run has ended
and its log is sealed, or the run or upload does not exist. Blobs older than the index are kept: they may
belong to a lost index that will be restored. Called by `api.maintenance.loops`.
"""

import asyncio
from datetime import datetime, timedelta

import structlog

from api.store.blobs.blobs import ListedBlob
from api.store.store import Store

log = structlog.get_logger()

MIN_ORPHAN_AGE = timedelta(days=1)
PAGE_PAUSE_SECONDS = 0.05
"""Pause between two pages of the list; leaves disk and index to other work."""


async def delete_orphans(store: Store, now: datetime) -> int:
    """List all blobs once, page by page, and return the number of deleted blobs."""
    index_created_at = await store.expired_records.tracking_start(now)
    deleted = await store.blobs.delete_stale_parts(now - MIN_ORPHAN_AGE)
    if deleted:
        log.warning("incomplete blob files deleted", amount=deleted)
    async for page in store.blobs.list_folder(store.namespace):
        old = [blob for blob in page if index_created_at <= blob.modified < now - MIN_ORPHAN_AGE]
        for orphan in await _orphans(store, old):
            log.warning("orphan blob deleted", key=orphan.key, bytes=orphan.size)
            await store.blobs.delete(orphan.key)
            deleted += 1
        await asyncio.sleep(PAGE_PAUSE_SECONDS)
    return deleted


async def _orphans(store: Store, blobs: list[ListedBlob]) -> list[ListedBlob]:
    run_blobs = {blob.key: name for blob in blobs if (name := _owner_name(blob.key, "runs"))}
    upload_blobs = {
        blob.key: name for blob in blobs if (name := _owner_name(blob.key, "uploads", "incoming"))
    }
    referenced, open_runs = (
        await store.expired_records.run_blobs(sorted(set(run_blobs.values())))
        if run_blobs
        else (set(), set())
    )
    if upload_blobs:
        uploads = await store.uploads.existing(sorted(set(upload_blobs.values())))
        referenced |= {key for key, name in upload_blobs.items() if name in uploads}
    referenced |= {key for key, name in run_blobs.items() if name in open_runs}
    return [blob for blob in blobs if blob.key in run_blobs | upload_blobs and blob.key not in referenced]


def _owner_name(key: str, *kinds: str) -> str | None:
    """Return the name of the run or upload that a blob key belongs to."""
    parts = key.split("/")
    return parts[2] if len(parts) > 2 and parts[1] in kinds else None
