"""Build logs in PostgreSQL: any replica appends and reads. Opened by `api.store.store`."""

from collections.abc import Sequence

from api.store.logs.build_logs import MAX_RECORDS, BuildLogs, Chunk, new_chunks
from api.store.logs.journal import Record, encode_record
from api.store.logs.postgres_journals import JournalTables
from api.store.sql.notifier import Notifier
from api.store.sql.postgres.database import PostgresDatabase

CHUNKS_PER_DELETE = 5000
"""Chunks deleted per transaction."""


class PostgresBuildLogs(BuildLogs):
    """Build logs as rows of PostgreSQL."""

    def __init__(self, database: PostgresDatabase, namespace: str, notifier: Notifier) -> None:
        super().__init__(notifier)
        self._database = database
        self._namespace = namespace
        self._tables = JournalTables(namespace, "build")

    async def append(self, deployment: str, pod: str, container: str, chunks: Sequence[Chunk]) -> int:
        """Implement `BuildLogs.append`."""
        async with self._database.locked(f"build/{self._namespace}/{deployment}") as connection:
            head = await self._tables.head(connection, deployment)
            container_key = f"{pod}/{container}"
            stored = head.state.get(container_key, 0)
            last, fresh = new_chunks(pod, container, chunks, stored, MAX_RECORDS - head.last)
            if last > stored:
                lines = [encode_record(record) for record in fresh]
                await self._tables.append(connection, deployment, lines, {**head.state, container_key: last})
        if fresh:
            self._notifier.notify(deployment)
        return last

    async def _read(self, deployment: str, after: int, limit: int) -> list[Record]:
        async with self._database.read() as connection:
            return await self._tables.read(connection, deployment, after, limit)

    async def remove(self, deployment: str) -> None:
        """Implement `BuildLogs.remove`."""
        done = False
        while not done:
            async with self._database.locked(f"build/{self._namespace}/{deployment}") as connection:
                done = await self._tables.delete_batch(connection, deployment, CHUNKS_PER_DELETE)
                if done:
                    await self._tables.remove(connection, deployment)
