"""The index in a SQLite file: one writer, readers apart. Opened by `api.store.store`.

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
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from api.store.database import Database, turn
from api.store.errors import StoreUnavailable

BUSY_MS = 1500
PATIENCE = 3.0
"""Seconds to wait for a connection: with BUSY_MS less than what a client is promised (5 s)."""
READERS = 4


class Sqlite(Database):
    """The SQLite file behind the index."""

    def __init__(self, path: Path) -> None:
        self._writer = _engine(path, "BEGIN IMMEDIATE", 1)
        self._readers = _engine(path, "BEGIN", READERS)
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """As `Database.read`."""
        async with _translated(), self._readers.begin() as connection:
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """As `Database.write`."""
        async with turn(self._turn, PATIENCE), _translated(), self._writer.begin() as connection:
            yield connection

    async def close(self) -> None:
        """As `Database.close`."""
        await self._writer.dispose()
        await self._readers.dispose()


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
