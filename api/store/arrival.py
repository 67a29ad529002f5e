"""Uploads that a client put into the bucket itself, at a signed address: taken over when they are needed.

Nobody trusts what lies at that address, since it can be written again while it holds: the bytes are
copied to the upload's own key, counted and hashed there. Called by the routes of uploads and deployments.
"""

import hashlib
from datetime import datetime

from api.store.blobs import Blobs
from api.store.errors import Mismatch, Missing
from api.store.index.uploads import UploadRow, Uploads


def key(row: UploadRow) -> str:
    """Where a client may write."""
    folder, _, name = row.blob.rpartition("/uploads/")
    return f"{folder}/incoming/{name}"


async def arrived(uploads: Uploads, blobs: Blobs, row: UploadRow, now: datetime) -> UploadRow:
    """The row, with its hash where the bytes are here now; unchanged where they are not.

    Raises Mismatch where they are not those that were announced, StoreUnavailable.
    """
    if row.stored_at is not None:
        return row
    try:
        size = await blobs.size(key(row))
        if size != row.size:
            raise Mismatch(f"{size} bytes were uploaded, {row.size} were announced; send it again", "size")
        await blobs.copy(key(row), row.blob)
    except Missing:
        # Another call may have taken them over since the row was read.
        return await uploads.get(row.id) or row
    digest, seen = hashlib.sha256(), 0
    async for chunk in blobs.read(row.blob):
        digest.update(chunk)
        seen += len(chunk)
    if seen != row.size or row.sha256 not in (None, digest.hexdigest()):
        await blobs.delete(row.blob)
        raise Mismatch(
            f"what was uploaded has {seen} bytes and the sha256 {digest.hexdigest()}, not those announced; "
            "send it again",
            "sha256",
        )
    await uploads.stored(row.id, digest.hexdigest(), now)
    await blobs.delete(key(row))
    return await uploads.get(row.id) or row
