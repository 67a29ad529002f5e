"""Uploads that a client put into the bucket itself, at a signed address: taken over when they are needed.

Nobody trusts what lies at that address, since it can be written again while it holds: the bytes are
copied to the upload's own key, counted and hashed there. Called by the routes of uploads and deployments.
"""

import hashlib
import secrets
from datetime import datetime

from api.store.blobs.blobs import Blobs
from api.store.errors import Mismatch, Missing
from api.store.index.uploads import UploadRow, Uploads


def key(row: UploadRow) -> str:
    """Where a client may write."""
    folder = row.blob.partition("/uploads/")[0]
    return f"{folder}/incoming/{row.id}"


async def arrived(uploads: Uploads, blobs: Blobs, row: UploadRow, now: datetime) -> UploadRow:
    """The row, with its hash where the bytes are here now; unchanged where they are not.

    Raises Mismatch where they are not those that were announced, StoreUnavailable.
    """
    if row.stored_at is not None:
        return row
    # A place of its own: another call may take over other bytes at the same time.
    blob = row.place(secrets.token_hex(8))
    try:
        size = await blobs.size(key(row))
        if size != row.size:
            raise Mismatch(f"{size} bytes were uploaded, {row.size} were announced; send it again", "size")
        await blobs.copy(key(row), blob)
    except Missing:
        # Another call may have taken them over since the row was read.
        return await uploads.get(row.id) or row
    digest, seen = hashlib.sha256(), 0
    async for chunk in blobs.read(blob):
        digest.update(chunk)
        seen += len(chunk)
    if seen != row.size or row.sha256 not in (None, digest.hexdigest()):
        await blobs.delete(blob)
        raise Mismatch(
            f"what was uploaded has {seen} bytes and the sha256 {digest.hexdigest()}, not those announced; "
            "send it again",
            "sha256",
        )
    if not await uploads.stored(row.id, digest.hexdigest(), blob, now):
        await blobs.delete(blob)
    await blobs.delete(key(row))
    return await uploads.get(row.id) or row
