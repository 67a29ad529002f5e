"""Build logs in PostgreSQL: any replica appends to them and reads them. Opened by `api.store.store`."""

from collections.abc import Sequence

from api.store.logs.build_logs import MAX_RECORDS, BuildLogs, Chunk, following
from api.store.logs.journal import Record
from api.store.logs.postgres_journals import Tables
from api.store.sql.notifier import Signals
from api.store.sql.postgres.database import Postgres

AT_ONCE = 5000
"""Chunks deleted in one transaction."""


class TableBuildLogs(BuildLogs):
    """Build logs as rows."""

    def __init__(self, database: Postgres, namespace: str, signals: Signals) -> None:
        super().__init__(signals)
        self._database = database
        self._namespace = namespace
        self._tables = Tables(namespace, "build")

    async def append(self, deployment: str, pod: str, container: str, chunks: Sequence[Chunk]) -> int:
        """As `BuildLogs.append`."""
        async with self._database.alone(f"build/{self._namespace}/{deployment}") as connection:
            head = await self._tables.head(connection, deployment)
            who = f"{pod}/{container}"
            known = head.state.get(who, 0)
            last, fresh = following(pod, container, chunks, known, MAX_RECORDS - head.last)
            if last > known:
                await self._tables.append(connection, deployment, fresh, {**head.state, who: last})
        if fresh:
            self._signals.ring(deployment)
        return last

    async def _read(self, deployment: str, after: int, limit: int) -> list[Record]:
        async with self._database.read() as connection:
            return await self._tables.read(connection, deployment, after, limit)

    async def remove(self, deployment: str) -> None:
        """As `BuildLogs.remove`."""
        done = False
        while not done:
            async with self._database.alone(f"build/{self._namespace}/{deployment}") as connection:
                done = await self._tables.shrink(connection, deployment, AT_ONCE)
                if done:
                    await self._tables.remove(connection, deployment)
