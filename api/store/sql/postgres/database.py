"""The index in PostgreSQL, for several replicas. Opened by `api.store.store`.

A writing transaction begins by taking a lock that ends with it: one replica writes at a time, and with
PostgreSQL's default isolation each of its statements sees what the one before committed. So all guarantees of
SQLite's single writer hold here too, and no transaction can deadlock or need a retry. The queue within a
replica is in this process: a busy replica takes one place in PostgreSQL's.

Every wait is bounded, here and by the server: a replica that stops in the middle of a transaction loses its
connection, and with it the lock.
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
from api.store.locks import NamedLocks, hold_lock
from api.store.sql.database import Database
from api.store.sql.postgres.commit_marks import CommitMarks
from api.store.sql.postgres.engine import dispose, lock_number, make_engine, translate_errors

log = structlog.get_logger()

TRANSACTION_TIMEOUT_SECONDS = 3.0
"""Limit of a transaction, waiting included; clients are promised a response within 5 s."""
COMMIT_CHECK_SECONDS = 1.5
"""Extra limit to find out whether a transaction was committed."""
READER_CONNECTIONS = 8
APPENDER_CONNECTIONS = 8
_TAKE_WRITE_LOCK = select(func.pg_advisory_xact_lock(literal(lock_number("index"), BigInteger)))


class PostgresDatabase(Database):
    """The index in a PostgreSQL database."""

    def __init__(self, url: str) -> None:
        self._writer = make_engine(url, 1)
        self._readers = make_engine(url, READER_CONNECTIONS).execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self._appenders = make_engine(url, APPENDER_CONNECTIONS)
        self._write_lock = asyncio.Lock()
        self._name_locks = NamedLocks()
        self._marks = CommitMarks()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """Implement `Database.read`."""
        async with translate_errors(TRANSACTION_TIMEOUT_SECONDS), self._readers.begin() as connection:
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """Implement `Database.write`. If the response to COMMIT is lost, check it on another connection."""
        end = time.monotonic() + TRANSACTION_TIMEOUT_SECONDS
        async with hold_lock(self._write_lock, TRANSACTION_TIMEOUT_SECONDS):
            mark, pid, committed = None, 0, _nothing
            try:
                async with translate_errors(end - time.monotonic()), self._writer.connect() as connection:
                    await connection.execute(_TAKE_WRITE_LOCK)
                    yield connection
                    committed = await self._add_to_commit(connection)
                    mark = await self._marks.write(connection)
                    pid = await _server_pid(connection)
                    await connection.commit()
            except StoreUnavailable:
                if mark is None or not await self._is_committed(mark, pid):
                    raise
            committed()

    async def _is_committed(self, mark: int, pid: int) -> bool:
        async with translate_errors(COMMIT_CHECK_SECONDS), self._appenders.connect() as connection:
            committed = await self._marks.is_committed(connection, mark, pid)
        log.warning("the response to a commit was lost", committed=committed)
        return committed

    @asynccontextmanager
    async def locked(self, name: str) -> AsyncIterator[AsyncConnection]:
        """Open a transaction that holds the installation-wide lock `name`, in parallel to the writing ones.

        Within it `write` may be used, never the other way round. Raises StoreUnavailable.
        """
        # Wait in this process first: one busy lock would otherwise take all connections.
        async with (
            self._name_locks.hold(name, TRANSACTION_TIMEOUT_SECONDS),
            translate_errors(None),
            self._appenders.connect() as connection,
        ):
            async with translate_errors(TRANSACTION_TIMEOUT_SECONDS):
                number = literal(lock_number(name), BigInteger)
                await connection.execute(select(func.pg_advisory_xact_lock(number)))
            yield connection
            async with translate_errors(TRANSACTION_TIMEOUT_SECONDS):
                await connection.commit()

    async def close(self) -> None:
        """Implement `Database.close`."""
        for pool in (self._writer, self._readers, self._appenders):
            await dispose(pool)


def _nothing() -> None:
    """Do nothing after a commit."""


async def _server_pid(connection: AsyncConnection) -> int:
    raw: Any = (await connection.get_raw_connection()).driver_connection
    return int(raw.get_server_pid())
