"""The store as one thing: opened at start, closed at the end, handed to everyone. Called by `api.app`."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from api.store.blobs import Blobs
from api.store.buildlogs import BuildLogs
from api.store.database import Database
from api.store.errors import Missing, StoreUnavailable, Taken
from api.store.events import Events
from api.store.index.artifacts import Artifacts
from api.store.index.claims import Claims
from api.store.index.deployments import Deployments
from api.store.index.idempotency import IdempotencyKeys
from api.store.index.keys import Keys
from api.store.index.places import Places
from api.store.index.projects import Projects
from api.store.index.runs import Runs
from api.store.index.uploads import UploadRow, Uploads
from api.store.index.usage import Usage
from api.store.lock import DirectoryLock
from api.store.migrate import migrate
from api.store.record import Record
from api.store.signals import Signals

INDEX = "index.sqlite3"


class Store:
    """What one namespace's facade keeps. Every call raises StoreUnavailable where it cannot be answered."""

    def __init__(self, directory: Path, namespace: str, database: Database, lock: DirectoryLock) -> None:
        self.namespace = namespace
        self.database = database
        self._lock = lock
        self._changes = Signals()
        self.projects = Projects(database, namespace, self._changes)
        self.deployments = Deployments(database, namespace, self._changes)
        self.runs = Runs(database, namespace)
        self.claims = Claims(database, namespace)
        self.places = Places(database, namespace)
        self.artifacts = Artifacts(database, namespace)
        self.uploads = Uploads(database, namespace)
        self.keys = Keys(database, namespace)
        self.usage = Usage(database, namespace)
        self.idempotency = IdempotencyKeys(database, namespace)
        self.events = Events(database, namespace, directory / "events" / namespace)
        self.record = Record(database, namespace, self.events)
        self.blobs = Blobs(directory / "blobs")
        self.buildlogs = BuildLogs(directory / "buildlogs" / namespace)

    @classmethod
    async def open(cls, directory: Path, namespace: str) -> "Store":
        """Opens or makes the store in `directory`, with the present schema. Raises StoreUnavailable."""
        try:
            lock = await asyncio.to_thread(DirectoryLock, directory)
        except OSError as error:
            raise StoreUnavailable(f"the store in {directory} cannot be opened: {error}") from error
        try:
            await asyncio.to_thread(migrate, directory / INDEX)
        except (OSError, SQLAlchemyError) as error:
            lock.release()
            raise StoreUnavailable(f"the index in {directory} cannot be opened: {error}") from error
        return cls(directory, namespace, Database(directory / INDEX), lock)

    async def close(self) -> None:
        """Closes all; waiting readers return."""
        self._changes.close()
        self.events.signals.close()
        self.buildlogs.signals.close()
        await self.database.close()
        self._lock.release()

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
        stored = await self.blobs.put(row.blob, chunks, row.size, row.sha256)
        await self.uploads.stored(upload, stored.sha256, now)
        found = await self.uploads.get(upload)
        if found is None:
            raise Missing("the upload is gone")
        return found


async def _compare(row: UploadRow, chunks: AsyncIterator[bytes]) -> None:
    digest, size = hashlib.sha256(), 0
    async for chunk in chunks:
        size += len(chunk)
        if size > row.size:
            break
        digest.update(chunk)
    if size != row.size or digest.hexdigest() != row.sha256:
        raise Taken("the upload has its bytes already; ask for a new one with POST /v1/uploads")
