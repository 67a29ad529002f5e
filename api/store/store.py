"""The store as one thing: opened at start, closed at the end, handed to everyone. Called by `api.app`."""

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

from api.store.blobs import Blobs
from api.store.buildlogs import BuildLogs
from api.store.events import Events
from api.store.index.artifacts import Artifacts
from api.store.index.deployments import Deployments
from api.store.index.idempotency import IdempotencyKeys
from api.store.index.keys import Keys
from api.store.index.projects import Projects
from api.store.index.runs import Runs
from api.store.index.uploads import UploadRow, Uploads


class Store:
    """What one namespace's facade keeps. Every call raises StoreUnavailable where it cannot be answered."""

    projects: Projects
    deployments: Deployments
    runs: Runs
    artifacts: Artifacts
    uploads: Uploads
    keys: Keys
    idempotency: IdempotencyKeys
    events: Events
    blobs: Blobs
    buildlogs: BuildLogs

    @classmethod
    async def open(cls, directory: Path, namespace: str) -> "Store":
        """Opens or makes the store in `directory` and brings its schema up to date."""
        raise NotImplementedError

    async def close(self) -> None:
        """Closes all; waiting readers return."""

    async def ready(self) -> None:
        """Returns if the store can read and write. Raises StoreUnavailable."""
        raise NotImplementedError

    async def receive(self, upload: str, chunks: AsyncIterator[bytes], now: datetime) -> UploadRow:
        """Stores an upload's bytes. The same bytes again are success.

        Raises Missing (unknown or expired), TooLarge, Mismatch, Taken (stored before with other bytes).
        """
        raise NotImplementedError
