"""The logs of runs in PostgreSQL: any replica appends to them and reads them. Opened by `api.store.store`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.logs.event_log import Said, Versions, count_tokens, following
from api.store.logs.event_logs import EventLogs, Held
from api.store.logs.journal import Record
from api.store.logs.postgres_journals import Head, Tables
from api.store.sql.postgres.database import Postgres

BATCH = 1000


class _HeldRows(Held):
    def __init__(self, tables: Tables, connection: AsyncConnection, run: str, head: Head) -> None:
        self._tables = tables
        self._connection = connection
        self._run = run
        self._state = dict(head.state)
        # Of versions that are left out there are few, if any: each is a number of the state.
        left_out = {int(sort[1:]) for sort in self._state if sort[0] == "v" and sort[1:]}
        self._versions = Versions(self._state.get("v", 0), left_out)

    @property
    def seq(self) -> int:
        return self._state.get("s", 0)

    async def say(self, events: Sequence[Said]) -> int:
        fresh = following(events, self.seq)
        if fresh:
            await self._append(fresh, {**self._state, "s": self.seq + len(fresh)})
        return self.seq

    async def stored(self, version: int, data: Mapping[str, Any]) -> None:
        if version not in self._versions:
            self._versions.add(version)
            state = {sort: number for sort, number in self._state.items() if sort[0] != "v"}
            state |= {"v": self._versions.last, **{f"v{left}": left for left in self._versions.left_out}}
            await self._append([{"v": version, "t": "artifact", "d": dict(data)}], state)

    async def seal(self, connection: AsyncConnection) -> int:
        # In the transaction that ends the run, so that the end holds although this one's lock be lost.
        return await self._tables.seal(connection, self._run)

    async def _append(self, records: Sequence[Record], state: Mapping[str, int]) -> None:
        await self._tables.append(self._connection, self._run, records, state)
        self._state = dict(state)


class TableEventLogs(EventLogs):
    """Logs as rows."""

    def __init__(self, database: Postgres, namespace: str) -> None:
        self._database = database
        self._namespace = namespace
        self._tables = Tables(namespace, "run")

    @asynccontextmanager
    async def hold(self, run: str) -> AsyncIterator[Held]:
        """As `EventLogs.hold`."""
        async with self._database.alone(self._lock(run)) as connection:
            yield _HeldRows(self._tables, connection, run, await self._tables.head(connection, run))

    async def seq(self, run: str) -> int:
        """As `EventLogs.seq`."""
        async with self._database.read() as connection:
            return (await self._tables.head(connection, run)).state.get("s", 0)

    async def read(self, run: str, after: int, limit: int, said: int | None) -> tuple[int, list[Record]]:
        """As `EventLogs.read`."""
        async with self._database.read() as connection:
            last = (await self._tables.head(connection, run)).last if said is None else said
            return last, await self._tables.read(connection, run, after, min(limit, last - after))

    async def lines(self, run: str, after: int, limit: int) -> list[bytes]:
        """As `EventLogs.lines`."""
        async with self._database.read() as connection:
            found = await self._tables.texts(connection, run, after, limit)
        return [text.encode() + b"\n" for text in found]

    async def clear(self, run: str) -> bool:
        """As `EventLogs.clear`."""
        async with self._database.alone(self._lock(run)) as connection:
            return await self._tables.shrink(connection, run, BATCH)

    async def forget(self, run: str) -> None:
        """As `EventLogs.forget`."""
        async with self._database.alone(self._lock(run)) as connection:
            await self._tables.remove(connection, run)

    def _lock(self, run: str) -> str:
        return f"log/{self._namespace}/{run}"

    async def tokens(self, run: str) -> tuple[int, int]:
        """As `EventLogs.tokens`."""
        prompt = completion = after = 0
        while True:
            async with self._database.read() as connection:
                found = await self._tables.marked(connection, run, '"t":"usage"', after, BATCH)
            for number, record in found:
                after, more = number, count_tokens(record)
                prompt, completion = prompt + more[0], completion + more[1]
            if len(found) < BATCH:
                return prompt, completion
