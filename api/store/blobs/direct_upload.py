"""Import of uploads that a client put into the bucket itself, through a presigned URL.

The object at that URL is untrusted, since the client can overwrite it until the URL expires: the import
copies the bytes to the upload's own key, and counts and hashes them there. Called by the routes of uploads
and deployments.
"""

import hashlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime

from api.store.blobs.blobs import Blobs
from api.store.errors import Mismatch, Missing, StoreUnavailable
from api.store.index.uploads import UploadRow, Uploads


def incoming_key(row: UploadRow) -> str:
    """Return the key that the client may write."""
    folder = row.blob.partition("/uploads/")[0]
    return f"{folder}/incoming/{row.id}"


async def import_upload(
    uploads: Uploads, blobs: Blobs, row: UploadRow, now: datetime, before_copy: Callable[[], Awaitable[None]]
) -> UploadRow:
    """Import the bytes if they have arrived; return the row, with its hash then, unchanged otherwise.

    `before_copy` is called if there are bytes of the announced size, and may raise to refuse the copy.
    Raises Mismatch if the bytes differ from the announced size or sha256, StoreUnavailable.
    """
    if row.stored_at is not None:
        return row
    # Each attempt has its own key: a parallel call may import other bytes.
    blob = row.attempt_key(secrets.token_hex(8))
    try:
        size = await blobs.size(incoming_key(row))
        if size != row.size:
            raise Mismatch(f"{size} bytes were uploaded, {row.size} were announced; send it again", "size")
        await before_copy()
        async with _deleting_on_failure(blobs, blob):
            await blobs.copy(incoming_key(row), blob, size)
    except Missing:
        # Another call may have imported them since the row was read.
        return await uploads.get(row.id) or row
    digest, received = hashlib.sha256(), 0
    async with _deleting_on_failure(blobs, blob):
        async for chunk in blobs.read(blob):
            digest.update(chunk)
            received += len(chunk)
    if received != row.size or row.sha256 not in (None, digest.hexdigest()):
        await blobs.delete(blob)
        raise Mismatch(
            f"the upload has {received} bytes and the sha256 {digest.hexdigest()}, not those announced; "
            "send it again",
            "sha256",
        )
    if not await uploads.mark_stored(row.id, digest.hexdigest(), blob, now):
        await blobs.delete(blob)
    await blobs.delete(incoming_key(row))
    return await uploads.get(row.id) or row


@asynccontextmanager
async def _deleting_on_failure(blobs: Blobs, blob: str) -> AsyncIterator[None]:
    """Delete the copy if the block raises StoreUnavailable; the next attempt has another key."""
    try:
        yield
    except StoreUnavailable:
        with suppress(StoreUnavailable):
            await blobs.delete(blob)
        raise
