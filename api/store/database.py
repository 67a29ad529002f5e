"""The index's connections: one writer, readers apart. Called by the nouns of `api.store.index`.

SQLite allows one writer at a time: with one connection behind a lock the queue
for it is ours, fair and bounded, and `database is locked` only comes from
outside. Readers see the last commit and never wait for the writer (WAL).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import event, exc
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from api.store.errors import StoreUnavailable
from api.store.schema import sequences

BUSY_MS = 1500
PATIENCE = 3.0
"""Seconds to wait for a connection: with BUSY_MS less than what a client is promised (5 s)."""
READERS = 4


class Database:
    """The SQLite file behind the index."""

    def __init__(self, path: Path) -> None:
        self._writer = _engine(path, "BEGIN IMMEDIATE", 1)
        self._readers = _engine(path, "BEGIN", READERS)
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """A connection whose queries all see one commit. Raises StoreUnavailable."""
        async with _translated(), self._readers.begin() as connection:
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """The writing connection, in a transaction that is on disk when the block is left.

        Raises StoreUnavailable, with nothing changed.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                await self._turn.acquire()
        except TimeoutError as error:
            raise StoreUnavailable("the index is busy; try again") from error
        try:
            async with _translated(), self._writer.begin() as connection:
                yield connection
        finally:
            self._turn.release()

    async def ready(self) -> None:
        """Returns if the file can be written. Raises StoreUnavailable."""
        async with self.write() as connection:
            first = insert(sequences).values(namespace="", name="ready", value=1)
            await connection.execute(
                first.on_conflict_do_update(
                    index_elements=["namespace", "name"], set_={"value": sequences.c.value + 1}
                )
            )

    async def close(self) -> None:
        """Closes all connections."""
        await self._writer.dispose()
        await self._readers.dispose()


async def next_ord(connection: AsyncConnection, namespace: str) -> int:
    """The next order number of the namespace, within the caller's transaction."""
    first = insert(sequences).values(namespace=namespace, name="ord", value=1)
    statement = first.on_conflict_do_update(
        index_elements=["namespace", "name"], set_={"value": sequences.c.value + 1}
    ).returning(sequences.c.value)
    return int((await connection.execute(statement)).scalar_one())


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    except (exc.OperationalError, exc.TimeoutError, exc.InterfaceError, OSError) as error:
        raise StoreUnavailable(f"the index cannot answer: {error.__class__.__name__}: {error}") from error


def _engine(path: Path, begin: str, size: int) -> AsyncEngine:
    engine = create_async_engine(
        f"sqlite+aiosqlite:///{path}", pool_size=size, max_overflow=0, pool_timeout=PATIENCE
    )

    @event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        # The driver would begin transactions by itself, too late for a snapshot.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in (
            f"busy_timeout = {BUSY_MS}",
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def start(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    return engine
