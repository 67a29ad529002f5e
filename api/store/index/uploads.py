"""Uploads as rows: announced, then stored once. Called by the routes of uploads and by `Store.receive`."""

from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import select, update

from api import ulid
from api.store.database import Database
from api.store.schema import uploads

PREFIX = "upl_"


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


_WHOLE = [uploads.c[field.name] for field in fields(UploadRow)]


class Uploads:
    """The table of uploads of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def create(
        self, project: str, size: int, sha256: str | None, now: datetime, expires_at: datetime
    ) -> UploadRow:
        """Announces an upload of exactly `size` bytes."""
        name = PREFIX + ulid.new()
        row = UploadRow(
            id=name,
            project=project,
            size=size,
            sha256=None if sha256 is None else sha256.lower(),
            created_at=now,
            expires_at=expires_at,
            stored_at=None,
            blob=f"{self._namespace}/uploads/{name}",
        )
        values = {field.name: getattr(row, field.name) for field in fields(row)}
        async with self._database.write() as connection:
            await connection.execute(uploads.insert().values(namespace=self._namespace, **values))
        return row

    async def get(self, upload: str) -> UploadRow | None:
        """One upload, or None."""
        query = select(*_WHOLE).where(uploads.c.namespace == self._namespace, uploads.c.id == upload)
        async with self._database.brief_read() as connection:
            row = (await connection.execute(query)).one_or_none()
        return UploadRow(**row._mapping) if row else None

    async def stored(self, upload: str, sha256: str, now: datetime) -> None:
        """Records that the bytes are there."""
        async with self._database.write() as connection:
            await connection.execute(
                update(uploads)
                .where(uploads.c.namespace == self._namespace, uploads.c.id == upload)
                .values(sha256=sha256, stored_at=now)
            )
