"""The store as one thing: opened at start, closed at the end, handed to everyone. Called by `api.app`."""

import hashlib
import secrets
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

from obstore.exceptions import BaseError

from api.store.backend import Kept, in_directory, in_postgres
from api.store.blobs.backends import in_bucket, in_folder
from api.store.blobs.blobs import Blobs
from api.store.errors import Missing, StoreUnavailable, Taken
from api.store.index.api_keys import Keys
from api.store.index.artifacts import Artifacts
from api.store.index.claims.claims import Claims
from api.store.index.claims.quota import Places
from api.store.index.deletion.expired_records import Records
from api.store.index.deployments import Deployments
from api.store.index.idempotency import IdempotencyKeys
from api.store.index.log_archives import Archives
from api.store.index.projects import Projects
from api.store.index.runs.run_writer import Record
from api.store.index.runs.runs import Runs
from api.store.index.storage_stats import Measure
from api.store.index.uploads import UploadRow, Uploads
from api.store.index.usage import Usage
from api.store.index.workflows import Workflows
from api.store.logs.event_archive import ArchivedEventLogs
from api.store.logs.events import Events
from crds.installation_limits import Limits

_TAKEN = "the upload has its bytes already; ask for a new one with POST /v1/uploads"


class Store:
    """What one namespace's facade keeps. Every call raises StoreUnavailable where it cannot be answered."""

    def __init__(self, namespace: str, kept: Kept, blobs: Blobs, limits: Limits | None = None) -> None:
        database = kept.database
        self.limits = limits or Limits()
        self.namespace = namespace
        self.database = database
        self._kept = kept
        self.projects = Projects(database, namespace, kept.changes)
        self.deployments = Deployments(database, namespace, kept.changes)
        self.runs = Runs(database, namespace)
        self.claims = Claims(database, namespace, self.limits.input_object_bytes)
        self.places = Places(database, namespace)
        self.artifacts = Artifacts(database, namespace)
        self.uploads = Uploads(database, namespace)
        self.keys = Keys(database, namespace, kept.changes)
        self.workflows = Workflows(database, namespace, kept.changes)
        self.usage = Usage(database, namespace)
        self.idempotency = IdempotencyKeys(database, namespace)
        self.archives = Archives(database, namespace)
        self.eventlogs = ArchivedEventLogs(kept.eventlogs, self.archives, blobs, namespace)
        self.records = Records(database, namespace)
        self.measure = Measure(database, namespace)
        self.events = Events(database, namespace, self.eventlogs, kept.told)
        self.record = Record(database, namespace, self.events, self.limits.input_object_bytes)
        self.blobs = blobs
        self.leader = kept.leader
        self.buildlogs = kept.buildlogs

    @classmethod
    async def open(
        cls,
        directory: Path,
        namespace: str,
        database_url: str | None = None,
        blobs_url: str | None = None,
        limits: Limits | None = None,
    ) -> "Store":
        """Opens or makes the store, with the present schema. Raises StoreUnavailable.

        Without a `database_url` index and logs are in `directory`, which no other process may have open;
        without a `blobs_url` blobs are there; without `limits` they are the usual ones.
        """
        try:
            blobs = in_folder(directory / "blobs") if blobs_url is None else in_bucket(blobs_url)
        except (OSError, ValueError, BaseError) as error:
            where = directory / "blobs" if blobs_url is None else "CREWYARD_BLOBS_URL"
            raise StoreUnavailable(f"the store of blobs, {where}, cannot be opened: {error}") from error
        kept = (
            await in_directory(directory, namespace)
            if database_url is None
            else await in_postgres(database_url, namespace)
        )
        return cls(namespace, kept, blobs, limits)

    async def close(self) -> None:
        """Closes all; waiting readers return."""
        await self._kept.close()

    async def ready(self) -> None:
        """Returns if the store can read and write. Raises StoreUnavailable."""
        await self.database.ready()

    async def receive(self, upload: str, chunks: AsyncIterator[bytes], now: datetime) -> UploadRow:
        """Stores an upload's bytes. The same bytes again are success.

        Raises Missing (unknown or expired), TooLarge, Mismatch, Taken (stored before with other bytes).
        """
        row = await self.uploads.get(upload)
        if row is None or (row.stored_at is None and now >= row.expires_at):
            raise Missing("the upload is unknown or has expired; ask for a new one with POST /v1/uploads")
        if row.stored_at is not None:
            await _compare(row, chunks)
            return row
        # A place of its own: who sends other bytes at the same time writes over nothing.
        blob = row.place(secrets.token_hex(8))
        stored = await self.blobs.put(blob, chunks, row.size, row.sha256)
        won = await self.uploads.stored(upload, stored.sha256, blob, now)
        found = await self.uploads.get(upload)
        if not won:
            await self.blobs.delete(blob)
        if found is None or found.stored_at is None:
            raise Missing("the upload is gone")
        if found.sha256 != stored.sha256:
            raise Taken(_TAKEN)
        return found


async def _compare(row: UploadRow, chunks: AsyncIterator[bytes]) -> None:
    digest, size = hashlib.sha256(), 0
    async for chunk in chunks:
        size += len(chunk)
        if size > row.size:
            break
        digest.update(chunk)
    if size != row.size or digest.hexdigest() != row.sha256:
        raise Taken(_TAKEN)
