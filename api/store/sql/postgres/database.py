"""The index in PostgreSQL, for several replicas. Opened by `api.store.store`.

A writing transaction begins by taking a lock that ends with it: one writes at a
time, whichever replica it is in, and with PostgreSQL's default isolation each of
its statements sees what the one before committed. So all that holds with SQLite's
one writer holds here too, and nothing can deadlock or need a repetition. The queue
within a replica is ours, so that one busy replica holds one place in PostgreSQL's.

Every wait is bounded here and by the server: a replica that is stopped in the
middle of a transaction loses its connection, and with it the lock.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog
from sqlalchemy import BigInteger, func, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.errors import StoreUnavailable
from api.store.sql.database import Database, turn
from api.store.sql.postgres.commit_marks import Marks
from api.store.sql.postgres.engine import dispose, engine, lock_number, translated

log = structlog.get_logger()

PATIENCE = 3.0
"""Seconds that a transaction may take, waiting included; a client is promised an answer in 5."""
CLEARING_UP = 1.5
"""Seconds more, where it must be found out whether a transaction was committed."""
READERS = 8
APPENDERS = 8
_WRITING = select(func.pg_advisory_xact_lock(literal(lock_number("index"), BigInteger)))


class Postgres(Database):
    """The PostgreSQL database behind the index."""

    def __init__(self, url: str) -> None:
        self._writer = engine(url, 1)
        self._readers = engine(url, READERS).execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self._appenders = engine(url, APPENDERS)
        self._turn = asyncio.Lock()
        self._marks = Marks()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """As `Database.read`."""
        async with translated(PATIENCE), self._readers.begin() as connection:
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """As `Database.write`. An answer to COMMIT that is lost is found out on another connection."""
        end = time.monotonic() + PATIENCE
        async with turn(self._turn, PATIENCE):
            mark, pid = None, 0
            try:
                async with translated(end - time.monotonic()), self._writer.connect() as connection:
                    await connection.execute(_WRITING)
                    yield connection
                    mark = await self._marks.leave(connection)
                    pid = await _server_pid(connection)
                    await connection.commit()
            except StoreUnavailable:
                if mark is None or not await self._kept(mark, pid):
                    raise

    async def _kept(self, mark: int, pid: int) -> bool:
        async with translated(CLEARING_UP), self._appenders.connect() as connection:
            kept = await self._marks.kept(connection, mark, pid)
        log.warning("the answer to a commit was lost", committed=kept)
        return kept

    @asynccontextmanager
    async def alone(self, name: str) -> AsyncIterator[AsyncConnection]:
        """A transaction beside the writing ones that is alone, in the installation, under this name.

        Within it `write` may be used, never the other way round. Raises StoreUnavailable.
        """
        async with translated(None), self._appenders.connect() as connection:
            async with translated(PATIENCE):
                number = literal(lock_number(name), BigInteger)
                await connection.execute(select(func.pg_advisory_xact_lock(number)))
            yield connection
            async with translated(PATIENCE):
                await connection.commit()

    async def close(self) -> None:
        """As `Database.close`."""
        for one in (self._writer, self._readers, self._appenders):
            await dispose(one)


async def _server_pid(connection: AsyncConnection) -> int:
    raw: Any = (await connection.get_raw_connection()).driver_connection
    return int(raw.get_server_pid())
