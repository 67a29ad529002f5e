"""The store of one namespace: index, event logs, build logs and blobs. Opened and closed by `api.app`."""

import hashlib
import secrets
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

from obstore.exceptions import BaseError

from api.store.backend import Backend, open_directory_backend, open_postgres_backend
from api.store.blobs.backends import bucket_blobs, directory_blobs
from api.store.blobs.blobs import Blobs
from api.store.errors import Missing, StoreConflict, StoreUnavailable
from api.store.index.api_keys import ApiKeys
from api.store.index.artifacts import Artifacts
from api.store.index.audit.audit_log import AuditLog
from api.store.index.claims.claims import Claims
from api.store.index.deletion.expired_records import ExpiredRecords
from api.store.index.deployments.build_queue import BuildQueue
from api.store.index.deployments.deployments import Deployments
from api.store.index.idempotency import IdempotencyKeys
from api.store.index.log_archives import LogArchives
from api.store.index.notifications.deliveries import Deliveries
from api.store.index.project_storage import ProjectStorage
from api.store.index.projects import Projects
from api.store.index.runs.input_requests import InputRequests
from api.store.index.runs.run_queue import RunQueue
from api.store.index.runs.run_writer import RunWriter
from api.store.index.runs.runs import Runs
from api.store.index.storage_stats import StorageMeter
from api.store.index.trace_exports import TraceExports
from api.store.index.uploads import UploadRow, Uploads
from api.store.index.usage import Usage
from api.store.index.workflows import Workflows
from api.store.logs.event_archive import ArchivedEventLogs
from api.store.logs.events import Events
from api.store.volume import Volume
from crds.installation_limits import InstallationLimits

_CONFLICT = "the upload already has its bytes; ask for a new one with POST /v1/uploads"


class Store:
    """The stored data of one namespace. Every call raises StoreUnavailable if the store cannot answer."""

    def __init__(
        self,
        namespace: str,
        backend: Backend,
        blobs: Blobs,
        limits: InstallationLimits | None = None,
        volume: Volume | None = None,
    ) -> None:
        database = backend.database
        self.limits = limits or InstallationLimits()
        self.volume = volume or Volume(None)
        self.namespace = namespace
        self.database = database
        self._backend = backend
        self.deployments = Deployments(database, namespace, backend.object_notifier)
        self.build_queue = BuildQueue(database, namespace)
        self.runs = Runs(database, namespace)
        self.claims = Claims(database, namespace, self.limits.input_object_bytes)
        self.run_queue = RunQueue(database, namespace)
        self.artifacts = Artifacts(database, namespace)
        self.uploads = Uploads(database, namespace)
        self.keys = ApiKeys(database, namespace, backend.object_notifier)
        self.workflows = Workflows(database, namespace, backend.object_notifier)
        self.audit = AuditLog(database, namespace)
        self.trace_exports = TraceExports(database, namespace)
        self.usage = Usage(database, namespace, self.trace_exports)
        self.deliveries = Deliveries(database, namespace)
        self.idempotency = IdempotencyKeys(database, namespace)
        self.archives = LogArchives(database, namespace)
        self.event_logs = ArchivedEventLogs(backend.event_logs, self.archives, blobs, namespace)
        self.expired_records = ExpiredRecords(database, namespace)
        self.project_storage = ProjectStorage(database, namespace)
        self.storage_meter = StorageMeter(database, namespace)
        self.events = Events(database, namespace, self.event_logs, backend.run_notifier)
        self.projects = Projects(
            database, namespace, backend.object_notifier, self.events.notify_state_changed
        )
        self.run_writer = RunWriter(database, namespace, self.events, self.limits.input_object_bytes)
        self.input_requests = InputRequests(database, namespace, backend.run_notifier)
        self.blobs = blobs
        self.leader = backend.leader
        self.build_logs = backend.build_logs

    @classmethod
    async def open(
        cls,
        directory: Path,
        namespace: str,
        database_url: str | None = None,
        blobs_url: str | None = None,
        limits: InstallationLimits | None = None,
    ) -> "Store":
        """Open or create the store and migrate its schema. Raises StoreUnavailable.

        Without `database_url` the index and the logs are in `directory`, which no other process may have
        open; without `blobs_url` the blobs are there too; without `limits` the defaults hold.
        """
        try:
            blobs = directory_blobs(directory / "blobs") if blobs_url is None else bucket_blobs(blobs_url)
        except (OSError, ValueError, BaseError) as error:
            location = directory / "blobs" if blobs_url is None else "CREWYARD_BLOBS_URL"
            raise StoreUnavailable(f"the blob store {location} cannot be opened: {error}") from error
        backend = (
            await open_directory_backend(directory, namespace)
            if database_url is None
            else await open_postgres_backend(database_url, namespace)
        )
        local = database_url is None or blobs_url is None
        floor = (limits or InstallationLimits()).free_bytes
        return cls(namespace, backend, blobs, limits, Volume(directory if local else None, floor))

    async def close(self) -> None:
        """Close everything; waiting readers return."""
        await self.projects.close()
        await self._backend.close()

    async def ready(self) -> None:
        """Return if the store can read and write. Raises StoreUnavailable."""
        await self.database.ready()

    async def receive(self, upload: str, chunks: AsyncIterator[bytes], now: datetime) -> UploadRow:
        """Store an upload's bytes and return its row. Sending the same bytes again succeeds.

        Raises Missing (unknown or expired), TooLarge, Mismatch, StoreConflict (other bytes are stored).
        """
        row = await self.uploads.get(upload)
        if row is None or (row.stored_at is None and now >= row.expires_at):
            raise Missing("the upload is unknown or has expired; ask for a new one with POST /v1/uploads")
        if row.stored_at is not None:
            await _compare(row, chunks)
            return row
        # Each attempt has its own key: a parallel attempt with other bytes overwrites nothing.
        self.volume.check_room()
        blob = row.attempt_key(secrets.token_hex(8))
        stored = await self.blobs.put(blob, chunks, row.size, row.sha256)
        is_first = await self.uploads.mark_stored(upload, stored.sha256, blob, now)
        current = await self.uploads.get(upload)
        if not is_first:
            await self.blobs.delete(blob)
        if current is None or current.stored_at is None:
            raise Missing("the upload is gone")
        if current.sha256 != stored.sha256:
            raise StoreConflict(_CONFLICT)
        self.project_storage.add(row.project, upload_bytes=row.size if is_first else 0)
        return current


async def _compare(row: UploadRow, chunks: AsyncIterator[bytes]) -> None:
    digest, size = hashlib.sha256(), 0
    async for chunk in chunks:
        size += len(chunk)
        if size > row.size:
            break
        digest.update(chunk)
    if size != row.size or digest.hexdigest() != row.sha256:
        raise StoreConflict(_CONFLICT)
