"""Rows and bytes of one project in the PostgreSQL and the bucket of `make up HA=1`.

Read from the database and the S3 server's files themselves, by no code of the product. Called by
`tests.campaign.replicas.installation`; the verdict is `tests.campaign.store.verdict`.
"""

import asyncio
import hashlib
from collections.abc import Iterable
from pathlib import Path

import asyncpg

from dev.embedded import replicas
from dev.embedded.components import object_store, postgresql
from dev.settings import Settings
from tests.campaign.store.contents import BlobFile, StoreContents, StoredRow

CONNECT_SECONDS = 60.0
ARTIFACTS = (
    "SELECT a.run, a.name, a.blob, a.size, a.sha256 FROM artifacts a "
    "JOIN runs r USING (namespace) WHERE r.name = a.run AND r.project = $1"
)
ARCHIVES = (
    "SELECT a.run, a.blob, a.size FROM archives a "
    "JOIN runs r USING (namespace) WHERE r.name = a.run AND r.project = $1"
)
UPLOADS = "SELECT id, blob, size, sha256 FROM uploads WHERE project = $1 AND stored_at IS NOT NULL"


async def read(settings: Settings, project: str) -> StoreContents:
    """The rows of a project, and the blobs that they name. Raises asyncpg.PostgresError, OSError."""
    bucket = settings.data / "replicas" / "buckets" / object_store.BUCKET
    return await read_servers(postgresql.url(replicas.password(settings)), bucket, project)


async def read_servers(url: str, bucket: Path, project: str) -> StoreContents:
    """The same for a database's URL and a bucket's directory."""
    database = await asyncpg.connect(url.replace("+asyncpg", ""), timeout=CONNECT_SECONDS)
    try:
        async with database.transaction(isolation="repeatable_read", readonly=True):
            artifacts = await database.fetch(ARTIFACTS, project)
            archives = await database.fetch(ARCHIVES, project)
            uploads = await database.fetch(UPLOADS, project)
    finally:
        await database.close()
    rows = [
        *(
            StoredRow(f"{row['name']} of {row['run']}", row["blob"], row["size"], row["sha256"])
            for row in artifacts
        ),
        *(StoredRow(f"the events of {row['run']}", row["blob"], row["size"]) for row in archives),
        *(StoredRow(f"upload {row['id']}", row["blob"], row["size"], row["sha256"]) for row in uploads),
    ]
    blobs = await asyncio.to_thread(_blobs, bucket, {row.blob for row in rows})
    return StoreContents(rows=tuple(rows), blobs=blobs)


def _blobs(bucket: Path, keys: Iterable[str]) -> dict[str, BlobFile]:
    found = {}
    for key in keys:
        path = bucket / key
        if path.is_file():
            data = path.read_bytes()
            found[key] = BlobFile(len(data), hashlib.sha256(data).hexdigest())
    return found
