"""Uploads as rows: announced, then stored once. Called by the routes of uploads and by `Store.receive`."""

from dataclasses import dataclass
from datetime import datetime

from api.store.database import Database


@dataclass(frozen=True)
class UploadRow:
    """An announced upload (`upl_…`). `sha256` in hex: announced, or computed once stored."""

    id: str
    project: str
    size: int
    sha256: str | None
    created_at: datetime
    expires_at: datetime
    stored_at: datetime | None
    blob: str


class Uploads:
    """The table of uploads of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def create(
        self, project: str, size: int, sha256: str | None, now: datetime, expires_at: datetime
    ) -> UploadRow:
        """Announces an upload of exactly `size` bytes."""
        raise NotImplementedError

    async def get(self, upload: str) -> UploadRow | None:
        """One upload, or None."""
        raise NotImplementedError
