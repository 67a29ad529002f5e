"""Table of uploads: announced, then stored once. Called by the routes of uploads and by `Store.receive`."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import delete, func, or_, select, update

from api.store import ulid
from api.store.errors import UploadQuotaExceeded
from api.store.index.deletion import tombstones
from api.store.sql.database import Database
from api.store.sql.schema import deployments, uploads

PREFIX = "upl_"
UNBOUNDED = 1 << 62


def new_name() -> str:
    """Return the name of a new upload."""
    return PREFIX + ulid.new()


@dataclass(frozen=True)
class UploadRow:
    """An announced upload (`upl_…`). `sha256` (hex): announced, or computed when stored."""

    id: str
    project: str
    size: int
    sha256: str | None
    created_at: datetime
    expires_at: datetime
    stored_at: datetime | None
    blob: str

    def attempt_key(self, attempt: str) -> str:
        """Return the blob of one attempt to store the bytes; the upload keeps that of the first to finish."""
        return f"{self.blob}/{attempt}"


_COLUMNS = [uploads.c[field.name] for field in fields(UploadRow)]


class Uploads:
    """The uploads of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def create(
        self,
        project: str,
        size: int,
        sha256: str | None,
        now: datetime,
        expires_at: datetime,
        max_bytes: int = UNBOUNDED,
        max_total_bytes: int = UNBOUNDED,
        name: str | None = None,
    ) -> UploadRow:
        """Announce an upload of exactly `size` bytes, with a new name unless one is given.

        Raises UploadQuotaExceeded if the project's stored and announced uploads would exceed `max_bytes`, or
        those of all projects `max_total_bytes`.
        """
        name = name or new_name()
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
        counted = select(func.coalesce(func.sum(uploads.c.size), 0)).where(
            uploads.c.namespace == self._namespace,
            # An announced upload that was never sent counts until it expires.
            or_(uploads.c.stored_at.is_not(None), uploads.c.expires_at > now),
        )
        async with self._database.write() as connection:
            used = int((await connection.execute(counted.where(uploads.c.project == project))).scalar_one())
            if used + size > max_bytes:
                raise UploadQuotaExceeded(used, max_bytes)
            total = int((await connection.execute(counted)).scalar_one())
            if total + size > max_total_bytes:
                raise UploadQuotaExceeded(total, max_total_bytes, "all projects")
            await connection.execute(uploads.insert().values(namespace=self._namespace, **values))
        return row

    async def get(self, upload: str) -> UploadRow | None:
        """Return one upload, or None."""
        query = select(*_COLUMNS).where(uploads.c.namespace == self._namespace, uploads.c.id == upload)
        async with self._database.brief_read() as connection:
            row = (await connection.execute(query)).one_or_none()
        return UploadRow(**row._mapping) if row else None

    async def expire(self, expired_before: datetime, limit: int) -> list[UploadRow]:
        """Mark expired uploads that no build waits for as not stored; return up to `limit` of them."""
        waiting = select(deployments.c.spec).where(
            deployments.c.namespace == self._namespace,
            deployments.c.accounted.is_(False),
            deployments.c.phase.in_(("pending", "building")),
        )
        expired = (uploads.c.namespace == self._namespace, uploads.c.expires_at < expired_before)
        async with self._database.read() as connection:
            if not (await connection.execute(select(uploads.c.id).where(*expired).limit(1))).all():
                return []
        async with self._database.write() as connection:
            specs = (await connection.execute(waiting)).scalars()
            needed = [str(((spec.get("source") or {}).get("archive") or {}).get("upload")) for spec in specs]
            query = (
                select(*_COLUMNS).where(*expired, uploads.c.id.not_in(needed)).order_by(uploads.c.expires_at)
            )
            rows = [UploadRow(**row._mapping) for row in await connection.execute(query.limit(limit))]
            # A deployment requested from now on is refused before the bytes are deleted.
            await connection.execute(
                update(uploads)
                .where(uploads.c.namespace == self._namespace, uploads.c.id.in_([row.id for row in rows]))
                .values(stored_at=None)
            )
        return rows

    async def remove(self, ids: Sequence[str]) -> None:
        """Delete rows whose bytes are deleted."""
        async with self._database.write() as connection:
            await connection.execute(
                delete(uploads).where(uploads.c.namespace == self._namespace, uploads.c.id.in_(ids))
            )

    async def existing(self, ids: Sequence[str]) -> set[str]:
        """Return which of these uploads exist."""
        query = select(uploads.c.id).where(uploads.c.namespace == self._namespace, uploads.c.id.in_(ids))
        async with self._database.read() as connection:
            return set((await connection.execute(query)).scalars())

    async def mark_stored(self, upload: str, sha256: str, blob: str, now: datetime) -> bool:
        """Record the blob of an upload; return whether this call did it.

        It did not if another attempt was first, or if the project was deleted.
        """
        here = (uploads.c.namespace == self._namespace, uploads.c.id == upload)
        async with self._database.write() as connection:
            updated = await connection.execute(
                update(uploads)
                .where(*here, uploads.c.expires_at > tombstones.LONG_AGO, uploads.c.stored_at.is_(None))
                .values(sha256=sha256, blob=blob, stored_at=now)
            )
        return updated.rowcount == 1
