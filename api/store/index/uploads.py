"""Uploads as rows: announced, then stored once. Called by the routes of uploads and by `Store.receive`."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import delete, func, or_, select, update

from api.store.errors import Full
from api.store.index.deletion import tombstones
from api.store.sql.database import Database
from api.store.sql.schema import deployments, uploads
from crds import ulid

PREFIX = "upl_"
UNBOUNDED = 1 << 62


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

    def place(self, attempt: str) -> str:
        """The blob of one attempt to store the bytes, which only becomes the upload's if it is the first."""
        return f"{self.blob}/{attempt}"


_WHOLE = [uploads.c[field.name] for field in fields(UploadRow)]


class Uploads:
    """The table of uploads of one namespace."""

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
        most: int = UNBOUNDED,
    ) -> UploadRow:
        """Announces an upload of exactly `size` bytes.

        Raises Full where the project's uploads, which are kept for a while, would have more than `most`.
        """
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
        kept = select(func.coalesce(func.sum(uploads.c.size), 0)).where(
            uploads.c.namespace == self._namespace,
            uploads.c.project == project,
            # What was announced, and never sent, takes no room once nothing can be sent any more.
            or_(uploads.c.stored_at.is_not(None), uploads.c.expires_at > now),
        )
        async with self._database.write() as connection:
            held = int((await connection.execute(kept)).scalar_one())
            if held + size > most:
                raise Full(held, most)
            await connection.execute(uploads.insert().values(namespace=self._namespace, **values))
        return row

    async def get(self, upload: str) -> UploadRow | None:
        """One upload, or None."""
        query = select(*_WHOLE).where(uploads.c.namespace == self._namespace, uploads.c.id == upload)
        async with self._database.brief_read() as connection:
            row = (await connection.execute(query)).one_or_none()
        return UploadRow(**row._mapping) if row else None

    async def spend(self, expired_before: datetime, limit: int) -> list[UploadRow]:
        """Uploads whose address expired before and that no build waits for; they count as never sent now."""
        waiting = select(deployments.c.spec).where(
            deployments.c.namespace == self._namespace,
            deployments.c.accounted.is_(False),
            deployments.c.phase.in_(("pending", "building")),
        )
        old = (uploads.c.namespace == self._namespace, uploads.c.expires_at < expired_before)
        async with self._database.read() as connection:
            if not (await connection.execute(select(uploads.c.id).where(*old).limit(1))).all():
                return []
        async with self._database.write() as connection:
            specs = (await connection.execute(waiting)).scalars()
            needed = [str(((spec.get("source") or {}).get("archive") or {}).get("upload")) for spec in specs]
            query = select(*_WHOLE).where(*old, uploads.c.id.not_in(needed)).order_by(uploads.c.expires_at)
            rows = [UploadRow(**row._mapping) for row in await connection.execute(query.limit(limit))]
            # A deployment that is asked for now is told that the bytes are gone, before they are.
            await connection.execute(
                update(uploads)
                .where(uploads.c.namespace == self._namespace, uploads.c.id.in_([row.id for row in rows]))
                .values(stored_at=None)
            )
        return rows

    async def remove(self, ids: Sequence[str]) -> None:
        """Deletes rows, once their bytes are gone."""
        async with self._database.write() as connection:
            await connection.execute(
                delete(uploads).where(uploads.c.namespace == self._namespace, uploads.c.id.in_(ids))
            )

    async def known(self, ids: Sequence[str]) -> set[str]:
        """Which of these uploads there are."""
        query = select(uploads.c.id).where(uploads.c.namespace == self._namespace, uploads.c.id.in_(ids))
        async with self._database.read() as connection:
            return set((await connection.execute(query)).scalars())

    async def stored(self, upload: str, sha256: str, blob: str, now: datetime) -> bool:
        """Records where the bytes are; whether this did it.

        It did not if others were there first, or the project is gone that they were sent for.
        """
        here = (uploads.c.namespace == self._namespace, uploads.c.id == upload)
        async with self._database.write() as connection:
            done = await connection.execute(
                update(uploads)
                .where(*here, uploads.c.expires_at > tombstones.LONG_AGO, uploads.c.stored_at.is_(None))
                .values(sha256=sha256, blob=blob, stored_at=now)
            )
        return done.rowcount == 1
