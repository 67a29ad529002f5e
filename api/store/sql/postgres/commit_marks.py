"""Whether a transaction was committed whose answer never came. Called by `api.store.sql.postgres.database`.

A connection that dies while COMMIT is under way leaves both possible. So each writing
transaction that changes something leaves, as its last statement, a number in a row of
its process: the row says, to any later connection, which transaction was the last.
(A transaction's own number would not do: after a crash the server gives it out again.)
"""

import secrets
import time

from sqlalchemy import BigInteger, bindparam, text
from sqlalchemy.ext.asyncio import AsyncConnection

_WEEK = 7 * 24 * 3600 * 10**6
_NUMBER = bindparam("number", type_=BigInteger)
# What changed nothing has no number of its own yet: it needs no mark, and no flush to the disk.
_LEAVE = text(
    "insert into sequences as known (namespace, name, value)"
    " select '', :name, :number where pg_current_xact_id_if_assigned() is not null"
    " on conflict (namespace, name) do update set value = excluded.value returning value"
).bindparams(_NUMBER)
# Waits for a transaction that holds the row, also for one that makes it.
_SEEN = text(
    "insert into sequences as known (namespace, name, value) values ('', :name, 0)"
    " on conflict (namespace, name) do update set value = known.value returning value"
)
# The server may not have heard that the connection is gone: without its COMMIT it would wait for seconds.
_END = text(
    "select pg_terminate_backend(pid) from pg_stat_activity where pid = :pid and usename = current_user"
    " and datname = current_database() and state like 'idle in transaction%'"
)
_CLEAR = text(
    "delete from sequences where namespace = '' and name like 'commit/%' and value < :number"
).bindparams(_NUMBER)


class Marks:
    """The marks of one connection pool of size one: its transactions follow one another."""

    def __init__(self) -> None:
        self._name = f"commit/{secrets.token_hex(8)}"
        self._last = 0

    async def leave(self, connection: AsyncConnection) -> int | None:
        """As a transaction's last statement: its mark; None where there is nothing to commit.

        The mark is microseconds since 1970, and greater than every earlier one.
        """
        first = not self._last
        self._last = max(self._last + 1, time.time_ns() // 1000)
        left = await connection.execute(_LEAVE, {"name": self._name, "number": self._last})
        if left.first() is None:
            return None
        if first:
            await connection.execute(_CLEAR, {"number": self._last - _WEEK})
        return self._last

    async def kept(self, connection: AsyncConnection, mark: int, pid: int) -> bool:
        """Whether the transaction with this mark, of a connection with this process id, was committed.

        Waits for its end, which it brings about where COMMIT did not arrive. On another connection.
        """
        await connection.execute(_END, {"pid": pid})
        found = await connection.execute(_SEEN, {"name": self._name})
        return int(found.scalar_one()) == mark
