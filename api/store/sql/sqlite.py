"""The index in a SQLite file: one writer, separate readers. Opened by `api.store.store`.

SQLite allows one writer at a time: with one connection behind a lock, writers queue here, fair and bounded,
and `database is locked` only comes from other processes. Writers that wait at the same time share one commit.
Readers see the last commit and never wait for the writer (WAL). How statements reach SQLite:
`api.store.sql.sqlite_driver`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import exc
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from api.store.errors import cannot_answer
from api.store.locks import hold_lock
from api.store.sql.database import Database
from api.store.sql.sqlite_driver import SqliteConnection, connect
from api.store.sql.transaction_group import TransactionGroup

CONNECTION_TIMEOUT_SECONDS = 3.0
"""Wait for a connection: with LOCK_TIMEOUT_SECONDS below the 5 s that clients are promised."""
READER_CONNECTIONS = 4
READER_CACHE_KIB = 512
"""Pages that a reader keeps: every commit of the writer empties its cache, so that more only costs memory."""


class SqliteDatabase(Database):
    """The index in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self._writer = _engine(path, True, 1)
        self._readers = _engine(path, False, READER_CONNECTIONS)
        self._write_lock = asyncio.Lock()
        self._queued = 0
        self._group: TransactionGroup | None = None
        self._committing: asyncio.Task[None] | None = None
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
        async with self._turn(), _translated():
            if self._group is None:
                group = await TransactionGroup.open(self._writer, brief, durable)
                try:
                    yield group.connection
                    committed = await self._add_to_commit(group.connection) if durable else None
                except BaseException:
                    self._generation += 1
                    await group.roll_back()
                    raise
                await self._end_first(group, durable)
            else:
                group = self._group
                async with group.join(brief) as connection:
                    yield connection
                    committed = await self._add_to_commit(connection) if durable else None
        await group.wait()
        if committed is not None:
            committed()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Hold the write lock, and count who waits for it."""
        self._queued += 1
        waits = True
        try:
            async with hold_lock(self._write_lock, CONNECTION_TIMEOUT_SECONDS):
                self._queued -= 1
                waits = False
                yield
        finally:
            self._queued -= waits

    async def _end_first(self, group: TransactionGroup, durable: bool) -> None:
        """Commit now, or after those who wait already: the lock is fair, so the task comes after them."""
        if durable and self._queued and group.keep_open():
            self._group = group
            self._committing = asyncio.create_task(self._commit(group), name="group commit")
            return
        try:
            await group.commit_first()
        finally:
            self._generation += 1

    async def _commit(self, group: TransactionGroup) -> None:
        async with self._write_lock:
            self._group = None
            try:
                await group.commit_all()
            finally:
                self._generation += 1

    @property
    def generation(self) -> int | None:
        """Implement `Database.generation`: no other process writes."""
        return None if self._write_lock.locked() else self._generation

    async def close(self) -> None:
        """Implement `Database.close`."""
        if self._committing is not None:
            await asyncio.gather(self._committing, return_exceptions=True)
        await self._writer.dispose()
        await self._readers.dispose()


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    except (exc.OperationalError, exc.TimeoutError, exc.InterfaceError, OSError) as error:
        raise cannot_answer(error) from error


@asynccontextmanager
async def _transaction(engine: AsyncEngine, brief: bool) -> AsyncIterator[AsyncConnection]:
    async with engine.connect() as connection:
        raw: Any = (await connection.get_raw_connection()).driver_connection
        raw.brief = brief
        async with connection.begin():
            yield connection


def _engine(path: Path, writes: bool, size: int) -> AsyncEngine:
    pragmas = {
        "synchronous": "FULL",
        "foreign_keys": "ON",
    }
    if not writes:
        pragmas["cache_size"] = f"-{READER_CACHE_KIB}"

    async def make_connection(*_arguments: Any, **_options: Any) -> SqliteConnection:
        return await connect(path, writes, pragmas)

    return create_async_engine(
        "sqlite+aiosqlite:///index",
        async_creator=make_connection,
        pool_size=size,
        max_overflow=0,
        pool_timeout=CONNECTION_TIMEOUT_SECONDS,
    )
