"""Database interface of the index, independent of the engine. Called by the tables of `api.store.index`.

`api.store.sql.sqlite` is the default, `api.store.sql.postgres.database` serves several replicas. In both, a
writing transaction excludes all other writing ones of the installation and sees everything committed before
it: a transaction that reads and then writes needs no other lock. Readers never wait for it.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.sql.schema import sequences
from api.store.sql.upsert import increment_statement

BeforeCommit = Callable[[AsyncConnection], Awaitable[Callable[[], None] | None]]
"""Adds statements to a durable transaction; what it returns is called once that is committed."""


class Database(ABC):
    """Reading and writing transactions."""

    before_commit: BeforeCommit | None = None

    async def _add_to_commit(self, connection: AsyncConnection) -> Callable[[], None]:
        committed = None if self.before_commit is None else await self.before_commit(connection)
        return committed or (lambda: None)

    @abstractmethod
    def read(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a connection whose queries all see one commit. Raises StoreUnavailable."""

    @abstractmethod
    def write(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open the writing connection, in a transaction that is on disk when the block ends.

        Raises StoreUnavailable; nothing is changed then.
        """

    def brief_read(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a `read` for statements that each touch few indexed rows: they may block the event loop."""
        return self.read()

    def brief_write(self, durable: bool = True) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a `write` for such statements. A transaction that is not `durable`, and all later ones that
        are not, may be lost on power failure: use it only for data that is restored automatically.
        """
        return self.write()

    @property
    def generation(self) -> int | None:
        """A number that changes with every commit; None during a write, or if other processes also write.
        Data read entirely within one generation stays valid in it.
        """
        return None

    @abstractmethod
    async def close(self) -> None:
        """Close all connections."""

    async def ready(self) -> None:
        """Return if the index can be written. Raises StoreUnavailable."""
        async with self.write() as connection:
            await _count(connection, "", "ready")


async def next_ord(connection: AsyncConnection, namespace: str) -> int:
    """Return the next order number of the namespace, within the caller's transaction."""
    return await _count(connection, namespace, "ord")


async def _count(connection: AsyncConnection, namespace: str, name: str) -> int:
    statement = increment_statement(connection.dialect.name, sequences, "value")
    parameters = {"namespace": namespace, "name": name, "step": 1}
    return int((await connection.execute(statement, parameters)).scalar_one())
