"""The index in a SQLite file: one writer, separate readers. Opened by `api.store.store`.

SQLite allows one writer at a time: with one connection behind a lock, writers queue here, fair and bounded,
and `database is locked` only comes from other processes. Readers see the last commit and never wait for the
writer (WAL). How statements reach SQLite: `api.store.sql.sqlite_driver`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import exc
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from api.store.errors import StoreUnavailable
from api.store.sql.database import Database, hold_write_lock
from api.store.sql.sqlite_driver import SqliteConnection, connect

CONNECTION_TIMEOUT_SECONDS = 3.0
"""Wait for a connection: with LOCK_TIMEOUT_SECONDS below the 5 s that clients are promised."""
READER_CONNECTIONS = 4


class SqliteDatabase(Database):
    """The index in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self._writer = _engine(path, True, 1)
        self._readers = _engine(path, False, READER_CONNECTIONS)
        self._write_lock = asyncio.Lock()
        self._generation = 0

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """Implement `Database.read`."""
        async with _translated(), _transaction(self._readers, brief=False) as connection:
            yield connection

    @asynccontextmanager
    async def brief_read(self) -> AsyncIterator[AsyncConnection]:
        """Implement `Database.brief_read`."""
        async with _translated(), _transaction(self._readers, brief=True) as connection:
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """Implement `Database.write`."""
        async with self._write(brief=False) as connection:
            yield connection

    @asynccontextmanager
    async def brief_write(self, durable: bool = True) -> AsyncIterator[AsyncConnection]:
        """Implement `Database.brief_write`."""
        async with self._write(brief=True, durable=durable) as connection:
            yield connection

    @asynccontextmanager
    async def _write(self, brief: bool, durable: bool = True) -> AsyncIterator[AsyncConnection]:
        async with (
            hold_write_lock(self._write_lock, CONNECTION_TIMEOUT_SECONDS),
            _translated(),
        ):
            committed = None
            try:
                async with _transaction(self._writer, brief, durable) as connection:
                    yield connection
                    committed = await self._add_to_commit(connection) if durable else None
                if committed is not None:
                    committed()
            finally:
                self._generation += 1

    @property
    def generation(self) -> int | None:
        """Implement `Database.generation`: no other process writes."""
        return None if self._write_lock.locked() else self._generation

    async def close(self) -> None:
        """Implement `Database.close`."""
        await self._writer.dispose()
        await self._readers.dispose()


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    except (exc.OperationalError, exc.TimeoutError, exc.InterfaceError, OSError) as error:
        raise StoreUnavailable(f"the index cannot answer: {error.__class__.__name__}: {error}") from error


@asynccontextmanager
async def _transaction(
    engine: AsyncEngine, brief: bool, durable: bool = True
) -> AsyncIterator[AsyncConnection]:
    async with engine.connect() as connection:
        raw: Any = (await connection.get_raw_connection()).driver_connection
        raw.brief, raw.durable = brief, durable
        async with connection.begin():
            yield connection


def _engine(path: Path, writes: bool, size: int) -> AsyncEngine:
    pragmas = {
        "journal_mode": "WAL",
        "synchronous": "FULL",
        "foreign_keys": "ON",
    }

    async def make_connection(*_arguments: Any, **_options: Any) -> SqliteConnection:
        return await connect(path, writes, pragmas)

    return create_async_engine(
        "sqlite+aiosqlite:///index",
        async_creator=make_connection,
        pool_size=size,
        max_overflow=0,
        pool_timeout=CONNECTION_TIMEOUT_SECONDS,
    )
