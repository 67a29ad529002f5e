"""SQLite driver for an event loop, below SQLAlchemy's `aiosqlite` dialect. Made by `api.store.sql.sqlite`.

aiosqlite sends every step of a statement (cursor, execute, fetch, close) to a thread and waits for it: on a
busy machine the thread switches cost many times what SQLite does. Here a statement is one step, and a `brief`
one, which touches few rows by an index, runs on the event loop without any thread. The end of a durable
transaction, which waits for the disk, always runs in a thread.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

CHECKPOINT_PAGES = 1000
LOCK_TIMEOUT_SECONDS = 1.5
LOCK_RETRY_SECONDS = 0.02
Parameters = Sequence[Any] | Mapping[str, Any]


class SqliteCursor:
    """The cursor that SQLAlchemy sees; `execute` has already fetched all its rows."""

    arraysize = 1

    def __init__(self, connection: "SqliteConnection") -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> "SqliteCursor":
        return self

    async def execute(self, statement: str, parameters: Parameters = ()) -> None:
        """Execute and fetch all rows. Raises sqlite3.Error."""
        await self._connection.run(lambda raw: self._fetch(raw.execute(statement, parameters)))

    async def executemany(self, statement: str, parameters: Sequence[Parameters]) -> None:
        """Execute once for each of `parameters`. Raises sqlite3.Error."""
        await self._connection.run(lambda raw: self._fetch(raw.executemany(statement, parameters)))

    async def fetchall(self) -> list[Any]:
        """Return the rows, once."""
        rows, self._rows = self._rows, []
        return rows

    async def close(self) -> None:
        """Do nothing: the raw cursor is closed already."""

    def _fetch(self, raw: sqlite3.Cursor) -> None:
        self._rows = raw.fetchall() if raw.description else []
        self.description, self.rowcount, self.lastrowid = raw.description, raw.rowcount, raw.lastrowid
        raw.close()


class SqliteConnection:
    """One connection. Every statement runs in a transaction; one that only reads sees a single state.

    `brief` applies to the next statements: whether each touches few rows; `durable` to the next transaction:
    whether its commit waits for the disk. A commit that is not durable survives the end of the process, but
    maybe not a power failure; a durable commit takes all earlier ones to the disk.
    `transaction_number` counts the writing transactions.
    The dialect reads `isolation_level` and `_connection`.
    """

    def __init__(self, path: Path, writes: bool, pragmas: Mapping[str, str]) -> None:
        self.brief, self.durable = False, True
        self.transaction_number = 0
        self.isolation_level = None
        self._writes, self._synchronous_full = writes, True
        self._raw = self._connection = sqlite3.connect(
            path, LOCK_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._thread = ThreadPoolExecutor(1, "sqlite")
        for name, value in pragmas.items():
            self._raw.execute(f"PRAGMA {name} = {value}")
        if writes:
            self._raw.execute("PRAGMA busy_timeout = 0")

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._raw.in_transaction

    def cursor(self) -> SqliteCursor:
        """Return a cursor for one statement."""
        return SqliteCursor(self)

    async def run(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Run `work` in a transaction, here if it is brief, otherwise in the thread."""
        if not self._raw.in_transaction:
            await self._begin()
        if self.brief:
            work(self._raw)
        else:
            await self._run_in_thread(lambda: work(self._raw))

    async def commit(self) -> None:
        """Commit the transaction; a durable one is on disk then."""
        await self._end(self._raw.commit)

    async def rollback(self) -> None:
        """Roll back the transaction, if there is one."""
        await self._end(self._raw.rollback)

    async def create_function(self, *arguments: Any, **options: Any) -> None:
        """Define a function; the dialect defines REGEXP."""
        self._raw.create_function(*arguments, **options)

    async def close(self) -> None:
        """Close connection and thread. Idempotent."""
        self.stop()

    def stop(self) -> None:
        """Close without waiting for a running statement."""
        try:
            self._thread.submit(self._raw.close)
        except RuntimeError:
            return
        self._thread.shutdown(wait=False)

    async def _begin(self) -> None:
        """Begin the transaction before the first statement. Only another process can hold SQLite's lock;
        retry with pauses, since no other writer of this process waits here.
        """
        if not self._writes:
            self._raw.execute("BEGIN")
            return
        if self._synchronous_full is not self.durable:
            self._raw.execute(f"PRAGMA synchronous = {'FULL' if self.durable else 'NORMAL'}")
            # A commit that is not durable never runs a checkpoint: it stays free of disk work.
            self._raw.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES if self.durable else 0}")
            self._synchronous_full = self.durable
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while True:
            try:
                self._raw.execute("BEGIN IMMEDIATE")
                self.transaction_number += 1
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(LOCK_RETRY_SECONDS)

    async def _end(self, end: Callable[[], None]) -> None:
        if not self._raw.in_transaction:
            return
        if self._writes and (self.durable or not self.brief):
            await self._run_in_thread(end)
        else:
            end()

    async def _run_in_thread(self, work: Callable[[], Any]) -> None:
        try:
            future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        except RuntimeError as error:
            raise sqlite3.ProgrammingError("no active connection") from error
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError:
            # A canceled caller must not return a connection that is still at work to the pool.
            await asyncio.wait([future])
            if not future.cancelled():
                future.exception()
            raise


async def connect(path: Path, writes: bool, pragmas: Mapping[str, str]) -> SqliteConnection:
    """Return an open connection. Raises sqlite3.Error."""
    return await asyncio.to_thread(SqliteConnection, path, writes, pragmas)
