"""Blobs whose row never came, because a process ended in between: found by listing, and deleted.

Called by `api.maintenance.loops`. A blob goes a day after it was written, if nothing names it and nothing can any
more: its run has ended and its log is sealed, or there is no such run or upload. What is older than the index
stays: it may belong to one that was lost and is still to be restored.
"""

import asyncio
from datetime import datetime, timedelta

import structlog

from api.store.blobs.blobs import Listed
from api.store.store import Store

log = structlog.get_logger()

OLD = timedelta(days=1)
PAUSE = 0.05
"""Seconds between two pages of the list: others use disk and index too."""


async def sweep(store: Store, now: datetime) -> int:
    """Looks at all blobs once, page by page; gives how many were deleted."""
    born = await store.records.born(now)
    done = await store.blobs.tidy(now - OLD)
    if done:
        log.warning("files of blobs that never became whole are deleted", amount=done)
    async for page in store.blobs.below(store.namespace):
        old = [blob for blob in page if born <= blob.modified < now - OLD]
        for orphan in await _unknown(store, old):
            log.warning("a blob that nothing names is deleted", key=orphan.key, bytes=orphan.size)
            await store.blobs.delete(orphan.key)
            done += 1
        await asyncio.sleep(PAUSE)
    return done


async def _unknown(store: Store, blobs: list[Listed]) -> list[Listed]:
    of_runs = {blob.key: name for blob in blobs if (name := _part(blob.key, "runs"))}
    of_uploads = {blob.key: name for blob in blobs if (name := _part(blob.key, "uploads", "incoming"))}
    known, open_ = await store.records.blobs(sorted(set(of_runs.values()))) if of_runs else (set(), set())
    if of_uploads:
        uploads = await store.uploads.known(sorted(set(of_uploads.values())))
        known |= {key for key, name in of_uploads.items() if name in uploads}
    known |= {key for key, name in of_runs.items() if name in open_}
    return [blob for blob in blobs if blob.key in of_runs | of_uploads and blob.key not in known]


def _part(key: str, *kinds: str) -> str | None:
    """The name of the run or upload that a key is of."""
    parts = key.split("/")
    return parts[2] if len(parts) > 2 and parts[1] in kinds else None
