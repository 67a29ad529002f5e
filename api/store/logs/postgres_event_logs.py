"""Event logs of runs in PostgreSQL: any replica appends and reads. Opened by `api.store.store`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.logs.event_budget import NO_BUDGET, EventBudget
from api.store.logs.event_log import ArtifactVersions, NewEvent, artifact_line, fitting_lines
from api.store.logs.event_logs import UNBOUNDED_SEQ, EventLogs, EventLogWriter
from api.store.logs.postgres_journals import JournalHead, JournalTables
from api.store.logs.stored_event import StoredEvent
from api.store.sql.postgres.database import PostgresDatabase
from api.store.token_counts import TokenCounts

RECORDS_PER_BATCH = 1000


class _PostgresEventLogWriter(EventLogWriter):
    def __init__(
        self, tables: JournalTables, connection: AsyncConnection, run: str, head: JournalHead
    ) -> None:
        self._tables = tables
        self._connection = connection
        self._run = run
        self._state = dict(head.state)
        self._count = head.last
        # Missing versions are few, if any: each is a key of the state.
        missing = {int(key[1:]) for key in self._state if key[0] == "v" and key[1:]}
        self._versions = ArtifactVersions(self._state.get("v", 0), missing)

    @property
    def seq(self) -> int:
        return self._state.get("s", 0)

    @property
    def full(self) -> bool:
        return bool(self._state.get("full"))

    @property
    def size_bytes(self) -> int:
        return self._state.get("b", 0)

    async def append(
        self, events: Sequence[NewEvent], budget: EventBudget = NO_BUDGET, text_bytes: int = 0
    ) -> int:
        if self.full:
            return max(self.seq, events[-1].seq) if events else self.seq
        fresh, full = fitting_lines(events, self.seq, self._count, self.size_bytes, budget, text_bytes)
        if fresh:
            state = {**self._state, "s": self.seq + len(fresh), **({"full": 1} if full else {})}
            await self._append(fresh, state)
        return max(self.seq, events[-1].seq) if full else self.seq

    async def append_artifact(self, version: int, data: Mapping[str, Any]) -> None:
        if version not in self._versions and not self.full:
            self._versions.add(version)
            state = {key: number for key, number in self._state.items() if key[0] != "v"}
            state |= {
                "v": self._versions.last,
                **{f"v{version}": version for version in self._versions.missing},
            }
            await self._append([artifact_line(version, data)], state)

    async def seal(self, connection: AsyncConnection) -> int:
        # In the transaction that ends the run: the seal holds even if the lock of this log is lost.
        return await self._tables.seal(connection, self._run)

    async def _append(self, lines: Sequence[bytes], state: Mapping[str, int]) -> None:
        state = {**state, "b": self.size_bytes + sum(len(line) + 1 for line in lines)}
        await self._tables.append(self._connection, self._run, lines, state)
        self._state = state
        self._count += len(lines)


class PostgresEventLogs(EventLogs):
    """Event logs as rows of PostgreSQL."""

    def __init__(self, database: PostgresDatabase, namespace: str) -> None:
        self._database = database
        self._namespace = namespace
        self._tables = JournalTables(namespace, "run")

    @asynccontextmanager
    async def open_writer(self, run: str) -> AsyncIterator[EventLogWriter]:
        """Implement `EventLogs.open_writer`."""
        async with self._database.locked(self._lock(run)) as connection:
            yield _PostgresEventLogWriter(
                self._tables, connection, run, await self._tables.head(connection, run)
            )

    async def seq(self, run: str) -> int:
        """Implement `EventLogs.seq`."""
        async with self._database.read() as connection:
            state = (await self._tables.head(connection, run)).state
        return UNBOUNDED_SEQ if state.get("full") else state.get("s", 0)

    async def read(
        self, run: str, after: int, limit: int, record_count: int | None
    ) -> tuple[int, list[StoredEvent]]:
        """Implement `EventLogs.read`."""
        async with self._database.read() as connection:
            last = (await self._tables.head(connection, run)).last if record_count is None else record_count
            texts = await self._tables.texts(connection, run, after, min(limit, last - after))
        return last, [StoredEvent.split(text.encode()) for text in texts]

    async def lines(self, run: str, after: int, limit: int) -> list[bytes]:
        """Implement `EventLogs.lines`."""
        async with self._database.read() as connection:
            texts = await self._tables.texts(connection, run, after, limit)
        return [text.encode() + b"\n" for text in texts]

    async def clear(self, run: str) -> bool:
        """Implement `EventLogs.clear`."""
        async with self._database.locked(self._lock(run)) as connection:
            return await self._tables.delete_batch(connection, run, RECORDS_PER_BATCH)

    async def delete(self, run: str) -> None:
        """Implement `EventLogs.delete`."""
        async with self._database.locked(self._lock(run)) as connection:
            await self._tables.remove(connection, run)

    def _lock(self, run: str) -> str:
        return f"log/{self._namespace}/{run}"

    async def tokens(self, run: str) -> TokenCounts:
        """Implement `EventLogs.tokens`."""
        counts = TokenCounts()
        async with self._database.read() as connection:
            last = (await self._tables.head(connection, run)).last
        for first in range(1, last + 1, RECORDS_PER_BATCH):
            async with self._database.read() as connection:
                records = await self._tables.records_containing(
                    connection, run, '"t":"usage"', first, first + RECORDS_PER_BATCH - 1
                )
            for record in records:
                counts.add(record["t"], record["d"])
        return counts
