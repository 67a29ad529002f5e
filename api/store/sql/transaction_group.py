"""Transactions of several callers that one commit takes to the disk. Opened by `api.store.sql.sqlite`.

A commit waits for the disk, many times longer than the statements of a transaction take. Therefore a
transaction that ends while others wait for the connection stays open; the others become savepoints in it,
and all callers go on once the commit that follows them is on the disk.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from api.store.errors import StoreUnavailable, cannot_answer
from api.store.sql.sqlite_driver import SqliteConnection


class TransactionGroup:
    """A transaction, and those that joined it. The caller holds the write lock, except for `wait`."""

    def __init__(self, stack: AsyncExitStack, connection: AsyncConnection, raw: SqliteConnection) -> None:
        self.connection = connection
        self._stack, self._raw = stack, raw
        self._number = 0
        self._error: asyncio.Future[StoreUnavailable | None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, engine: AsyncEngine, brief: bool, durable: bool) -> "TransactionGroup":
        """Return a group with its first transaction."""
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(engine.connect())
            raw = (await connection.get_raw_connection()).driver_connection
            assert isinstance(raw, SqliteConnection)
            raw.brief, raw.durable = brief, durable
            await stack.enter_async_context(connection.begin())
            return cls(stack.pop_all(), connection, raw)
        raise AssertionError("unreachable")

    def keep_open(self) -> bool:
        """Return whether others can join: the first transaction has statements."""
        self._number = self._raw.transaction_number
        return self._raw.in_transaction

    @asynccontextmanager
    async def join(self, brief: bool) -> AsyncIterator[AsyncConnection]:
        """Open a transaction within that of the group; an error undoes it alone."""
        self._raw.brief = brief
        async with self.connection.begin_nested():
            yield self.connection

    async def commit_first(self) -> None:
        """Commit the first transaction, which no other has joined. Raises the errors of the engine."""
        await self._stack.aclose()
        self._error.set_result(None)

    async def roll_back(self) -> None:
        """Roll back the first transaction, in the handler of its error."""
        await self._stack.__aexit__(*sys.exc_info())

    async def commit_all(self) -> None:
        """Commit; `wait` then returns to all callers, or raises in all of them."""
        error: StoreUnavailable | None = StoreUnavailable("the commit was interrupted; try again")
        try:
            if self._raw.in_transaction and self._raw.transaction_number == self._number:
                await self._stack.aclose()
                error = None
            else:
                # SQLite itself rolls back when the disk is full or broken: what came later is not the whole.
                error = StoreUnavailable("the index lost a transaction; try again")
                await self._stack.__aexit__(StoreUnavailable, error, None)
        except StoreUnavailable as problem:
            error = problem
        except Exception as problem:
            error = cannot_answer(problem)
        finally:
            self._error.set_result(error)

    async def wait(self) -> None:
        """Return once the commit is on the disk. Raises StoreUnavailable if it failed."""
        error = await asyncio.shield(self._error)
        if error is not None:
            raise StoreUnavailable(str(error)) from error
