"""Results by Idempotency-Key, stored for 24 hours. Called by run creation and the routes that create."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.errors import StoreConflict
from api.store.sql.database import Database
from api.store.sql.schema import idempotency as table

KEY_RETENTION = timedelta(hours=24)


@dataclass(frozen=True)
class Idempotency:
    """One use of a key: its `owner` (the API key's id), the header's value, and the hash of the body."""

    owner: str
    key: str
    body_sha256: str


class IdempotencyKeys:
    """The idempotency keys of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def find(self, use: Idempotency, now: datetime) -> str | None:
        """Return the object name that this use created, or None. Raises StoreConflict for another body."""
        async with self._database.brief_read() as connection:
            return await _find(connection, self._namespace, use, now)

    async def put(self, use: Idempotency, name: str, now: datetime) -> str:
        """Record that this use creates `name`; return the name recorded first. Raises StoreConflict."""
        async with self._database.write() as connection:
            return await record_use(connection, self._namespace, use, name, now)

    async def delete_expired(self, now: datetime, limit: int = 500) -> bool:
        """Delete up to `limit` rows older than 24 hours; return whether there may be more."""
        old = (table.c.namespace == self._namespace, table.c.created_at <= now - KEY_RETENTION)
        query = select(table.c.owner, table.c.key).where(*old).limit(limit)
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        if rows:
            chosen = tuple_(table.c.owner, table.c.key).in_([tuple(row) for row in rows])
            async with self._database.write() as connection:
                await connection.execute(delete(table).where(*old, chosen))
        return len(rows) == limit


async def record_use(
    connection: AsyncConnection, namespace: str, use: Idempotency, name: str, now: datetime
) -> str:
    """Implement `IdempotencyKeys.put` within the caller's transaction."""
    earlier = await _find(connection, namespace, use, now)
    if earlier is not None:
        return earlier
    key = {"namespace": namespace, "owner": use.owner, "key": use.key}
    # An expired row may still exist.
    await connection.execute(
        delete(table).where(
            table.c.namespace == namespace, table.c.owner == use.owner, table.c.key == use.key
        )
    )
    await connection.execute(
        table.insert().values(**key, body_sha256=use.body_sha256, name=name, created_at=now)
    )
    return name


async def _find(connection: AsyncConnection, namespace: str, use: Idempotency, now: datetime) -> str | None:
    query = select(table.c.body_sha256, table.c.name).where(
        table.c.namespace == namespace,
        table.c.owner == use.owner,
        table.c.key == use.key,
        table.c.created_at > now - KEY_RETENTION,
    )
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        return None
    if row.body_sha256 != use.body_sha256:
        raise StoreConflict(
            "this Idempotency-Key was used with another body; use a new one", "Idempotency-Key"
        )
    name: str = row.name
    return name
