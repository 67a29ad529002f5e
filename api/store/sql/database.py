"""The index's connections, whichever engine is behind them. Called by the nouns of `api.store.index`.

`api.store.sql.sqlite` is the default, `api.store.sql.postgres.database` the one for several replicas.
With both, a writing transaction is alone among the writing ones of the
installation, and sees all that those before it did: whoever reads and then writes
in one needs no other lock. Readers never wait for it.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.errors import StoreUnavailable
from api.store.sql.schema import sequences
from api.store.sql.upsert import adding


class Database(ABC):
    """Transactions that read, and transactions that write."""

    @abstractmethod
    def read(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """A connection whose queries all see one commit. Raises StoreUnavailable."""

    @abstractmethod
    def write(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """The writing connection, in a transaction that is on disk when the block is left.

        Raises StoreUnavailable, with nothing changed.
        """

    def brief_read(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """As `read`, for statements that each touch few rows, found by an index: they may stop all others."""
        return self.read()

    def brief_write(self, durable: bool = True) -> AbstractAsyncContextManager[AsyncConnection]:
        """As `write`, for such statements. What is not `durable` may be lost with the machine's power, and
        then with it what came after it: it must be found again by itself.
        """
        return self.write()

    @property
    def generation(self) -> int | None:
        """A number that is another one after every change, or None: while one is made, or where others make
        changes too. What was read from beginning to end within one generation still holds in it.
        """
        return None

    @abstractmethod
    async def close(self) -> None:
        """Closes all connections."""

    async def ready(self) -> None:
        """Returns if the index can be written. Raises StoreUnavailable."""
        async with self.write() as connection:
            await _count(connection, "", "ready")


@asynccontextmanager
async def turn(lock: asyncio.Lock, seconds: float) -> AsyncIterator[None]:
    """This process's turn to write, waited for in order. Raises StoreUnavailable after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            await lock.acquire()
    except TimeoutError as error:
        raise StoreUnavailable("the index is busy; try again") from error
    try:
        yield
    finally:
        lock.release()


async def next_ord(connection: AsyncConnection, namespace: str) -> int:
    """The next order number of the namespace, within the caller's transaction."""
    return await _count(connection, namespace, "ord")


async def _count(connection: AsyncConnection, namespace: str, name: str) -> int:
    statement = adding(connection.dialect.name, sequences, "value")
    given = {"namespace": namespace, "name": name, "step": 1}
    return int((await connection.execute(statement, given)).scalar_one())
