"""A SQLite connection for an event loop: the driver below SQLAlchemy's `aiosqlite` dialect. Made by
`api.store.sql.sqlite`.

aiosqlite gives every step of a statement (cursor, execute, fetch, close) to a
thread and waits for it: on a busy machine the changes of thread cost many times
what SQLite does. Here a statement is one step, and a `brief` one, which touches
few rows by an index, is done at once, without any thread. What waits for the disk,
the end of a durable transaction, never is.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

CHECKPOINT_PAGES = 1000
LOCKED_SECONDS = 1.5
LOOK_SECONDS = 0.02
Parameters = Sequence[Any] | Mapping[str, Any]


class Cursor:
    """What SQLAlchemy sees of a statement; its rows are all here when it was executed."""

    arraysize = 1

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> "Cursor":
        return self

    async def execute(self, statement: str, parameters: Parameters = ()) -> None:
        """Executes and fetches all. Raises sqlite3.Error."""
        await self._connection.run(lambda raw: self._take(raw.execute(statement, parameters)))

    async def executemany(self, statement: str, parameters: Sequence[Parameters]) -> None:
        """Executes for each of `parameters`. Raises sqlite3.Error."""
        await self._connection.run(lambda raw: self._take(raw.executemany(statement, parameters)))

    async def fetchall(self) -> list[Any]:
        """The rows, once."""
        rows, self._rows = self._rows, []
        return rows

    async def close(self) -> None:
        """Nothing is held."""

    def _take(self, done: sqlite3.Cursor) -> None:
        self._rows = done.fetchall() if done.description else []
        self.description, self.rowcount, self.lastrowid = done.description, done.rowcount, done.lastrowid
        done.close()


class Connection:
    """One connection. Every statement is within a transaction, those that only read of one state too.

    `brief` and `durable` hold for the transaction that is begun next: whether each of its statements touches
    few rows, and whether its end waits for the disk. What is not durable survives the end of the process,
    and not always the loss of power; a durable commit takes all before it to the disk.
    `isolation_level` and `_connection` are what the dialect looks at.
    """

    def __init__(self, path: Path, writes: bool, pragmas: Mapping[str, str]) -> None:
        self.brief, self.durable = False, True
        self.isolation_level = None
        self._writes, self._safe = writes, True
        self._raw = self._connection = sqlite3.connect(
            path, LOCKED_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._thread = ThreadPoolExecutor(1, "sqlite")
        for name, value in pragmas.items():
            self._raw.execute(f"PRAGMA {name} = {value}")
        if writes:
            self._raw.execute("PRAGMA busy_timeout = 0")

    def cursor(self) -> Cursor:
        """For one statement."""
        return Cursor(self)

    async def run(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Does `work` in a transaction, here, or in the thread where it may take time."""
        if not self._raw.in_transaction:
            await self._begin()
        if self.brief:
            work(self._raw)
        else:
            await self._aside(lambda: work(self._raw))

    async def commit(self) -> None:
        """Ends the transaction; a durable one is on disk then."""
        await self._end(self._raw.commit)

    async def rollback(self) -> None:
        """Undoes the transaction, if there is one."""
        await self._end(self._raw.rollback)

    async def create_function(self, *arguments: Any, **more: Any) -> None:
        """For the dialect, which defines REGEXP."""
        self._raw.create_function(*arguments, **more)

    async def close(self) -> None:
        """Ends connection and thread. May be repeated."""
        self.stop()

    def stop(self) -> None:
        """As `close`, without waiting for what is under way."""
        try:
            self._thread.submit(self._raw.close)
        except RuntimeError:
            return
        self._thread.shutdown(wait=False)

    async def _begin(self) -> None:
        """Begins before the first statement. Whoever holds the lock is another process, and waited for with
        pauses: nobody else waits with us.
        """
        if not self._writes:
            self._raw.execute("BEGIN")
            return
        if self._safe is not self.durable:
            self._raw.execute(f"PRAGMA synchronous = {'FULL' if self.durable else 'NORMAL'}")
            # What is not durable is never a checkpoint either, so that its end is no work for the disk.
            self._raw.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES if self.durable else 0}")
            self._safe = self.durable
        end = time.monotonic() + LOCKED_SECONDS
        while True:
            try:
                self._raw.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
            await asyncio.sleep(LOOK_SECONDS)

    async def _end(self, end: Callable[[], None]) -> None:
        if not self._raw.in_transaction:
            return
        if self._writes and (self.durable or not self.brief):
            await self._aside(end)
        else:
            end()

    async def _aside(self, work: Callable[[], Any]) -> None:
        try:
            future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        except RuntimeError as error:
            raise sqlite3.ProgrammingError("no active connection") from error
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError:
            # Whoever gives up must not leave a connection that is still at work to the next one.
            await asyncio.wait([future])
            if not future.cancelled():
                future.exception()
            raise


async def connect(path: Path, writes: bool, pragmas: Mapping[str, str]) -> Connection:
    """An open connection. Raises sqlite3.Error."""
    return await asyncio.to_thread(Connection, path, writes, pragmas)
