"""What an Idempotency-Key was answered with, kept 24 hours. Called by accept and the routes that create."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.errors import Taken
from api.store.sql.database import Database
from api.store.sql.schema import idempotency as table

KEPT = timedelta(hours=24)


@dataclass(frozen=True)
class Idempotency:
    """One use of a key: whose (`owner`, the API key's id), the header's text, and the hash of the body."""

    owner: str
    key: str
    body_sha256: str


class IdempotencyKeys:
    """The table of idempotency keys of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def find(self, use: Idempotency, now: datetime) -> str | None:
        """The object name this use made before, or None. Raises Taken where the body was another."""
        async with self._database.brief_read() as connection:
            return await _find(connection, self._namespace, use, now)

    async def put(self, use: Idempotency, name: str, now: datetime) -> str:
        """Records that this use makes `name`; answers the name that was recorded first. Raises Taken."""
        async with self._database.write() as connection:
            return await remember(connection, self._namespace, use, name, now)

    async def forget(self, now: datetime, limit: int = 500) -> bool:
        """Deletes up to `limit` of what is older than 24 hours; gives whether there may be more."""
        old = (table.c.namespace == self._namespace, table.c.created_at <= now - KEPT)
        query = select(table.c.owner, table.c.key).where(*old).limit(limit)
        async with self._database.read() as connection:
            found = (await connection.execute(query)).all()
        if found:
            chosen = tuple_(table.c.owner, table.c.key).in_([tuple(row) for row in found])
            async with self._database.write() as connection:
                await connection.execute(delete(table).where(*old, chosen))
        return len(found) == limit


async def remember(
    connection: AsyncConnection, namespace: str, use: Idempotency, name: str, now: datetime
) -> str:
    """As `IdempotencyKeys.put`, within the caller's transaction."""
    first = await _find(connection, namespace, use, now)
    if first is not None:
        return first
    key = {"namespace": namespace, "owner": use.owner, "key": use.key}
    # An expired record may still be there.
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
        table.c.created_at > now - KEPT,
    )
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        return None
    if row.body_sha256 != use.body_sha256:
        raise Taken("this Idempotency-Key was used with another body; use a new one", "Idempotency-Key")
    name: str = row.name
    return name
