"""Detection of commits whose response was lost. Called by `api.store.sql.postgres.database`.

A connection that dies during COMMIT leaves the outcome unknown. So each writing transaction that changes
something writes a number, as its last statement, into a row of its process: the row tells any later
connection which transaction was the last. (A transaction id would not do: the server reuses it after a
crash.)
"""

import secrets
import time

from sqlalchemy import BigInteger, bindparam, text
from sqlalchemy.ext.asyncio import AsyncConnection

_WEEK = 7 * 24 * 3600 * 10**6
_NUMBER = bindparam("number", type_=BigInteger)
# A transaction that changed nothing has no id yet: it needs no mark and no flush to the disk.
_WRITE = text(
    "insert into sequences as known (namespace, name, value)"
    " select '', :name, :number where pg_current_xact_id_if_assigned() is not null"
    " on conflict (namespace, name) do update set value = excluded.value returning value"
).bindparams(_NUMBER)
# Waits for a transaction that holds the row, or that inserts it.
_READ = text(
    "insert into sequences as known (namespace, name, value) values ('', :name, 0)"
    " on conflict (namespace, name) do update set value = known.value returning value"
)
# The server may not have noticed that the connection is gone: it would wait seconds for its COMMIT.
_TERMINATE = text(
    "select pg_terminate_backend(pid) from pg_stat_activity where pid = :pid and usename = current_user"
    " and datname = current_database() and state like 'idle in transaction%'"
)
_DELETE_OLD = text(
    "delete from sequences where namespace = '' and name like 'commit/%' and value < :number"
).bindparams(_NUMBER)


class CommitMarks:
    """The marks of one connection pool of size one: its transactions run one after the other."""

    def __init__(self) -> None:
        self._name = f"commit/{secrets.token_hex(8)}"
        self._last = 0

    async def write(self, connection: AsyncConnection) -> int | None:
        """Write the mark as a transaction's last statement; return it, or None if there is nothing to commit.

        The mark is microseconds since 1970, and greater than every earlier one.
        """
        is_first = not self._last
        self._last = max(self._last + 1, time.time_ns() // 1000)
        written = await connection.execute(_WRITE, {"name": self._name, "number": self._last})
        if written.first() is None:
            return None
        if is_first:
            await connection.execute(_DELETE_OLD, {"number": self._last - _WEEK})
        return self._last

    async def is_committed(self, connection: AsyncConnection, mark: int, pid: int) -> bool:
        """Return whether the transaction with this mark, on a connection with this server pid, was committed.

        Waits for its end, and forces it if COMMIT did not arrive. Call it on another connection.
        """
        await connection.execute(_TERMINATE, {"pid": pid})
        last = await connection.execute(_READ, {"name": self._name})
        return int(last.scalar_one()) == mark
