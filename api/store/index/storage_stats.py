"""Counts of stored rows and bytes, for the metrics. Updated by `api.maintenance.loops`, read by `api.app`."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select

from api.store.errors import StoreUnavailable
from api.store.sql.database import Database
from api.store.sql.schema import archives, artifacts, remains, run_counts, runs, tombstones, uploads

ROWS = ("run", "sealed", "tombstone", "artifact", "upload", "remains")
BYTES = ("artifact", "upload", "events")


@dataclass
class StorageStats:
    """The last measurement; zeros before the first one, and in replicas that do not lead."""

    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROWS, 0))
    bytes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BYTES, 0))
    oldest_unsealed: float = 0.0
    """Seconds since the end of the oldest run whose log is not sealed."""


class StorageMeter:
    """Measures the tables of one namespace; `last` is the last measurement."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace
        self.last = StorageStats()

    async def measure(self, now: datetime) -> StorageStats:
        """Count all rows and bytes; a count that fails stays as it was. Raises StoreUnavailable then."""
        stats, failed = self.last, None
        run_count = select(func.coalesce(func.sum(run_counts.c.count), 0))
        oldest = select(func.min(runs.c.completed_at)).where(
            runs.c.namespace == self._namespace, runs.c.sealed.is_(False)
        )
        counted = {
            "sealed": archives,
            "tombstone": tombstones,
            "artifact": artifacts,
            "upload": uploads,
            "remains": remains,
        }
        summed = {"artifact": artifacts, "upload": uploads, "events": archives}
        queries = [(stats.rows, "run", run_count.where(run_counts.c.namespace == self._namespace))]
        for kind, table in counted.items():
            query = select(func.count()).select_from(table).where(table.c.namespace == self._namespace)
            queries.append((stats.rows, kind, query))
        for kind, table in summed.items():
            size = select(func.coalesce(func.sum(table.c.size), 0)).where(
                table.c.namespace == self._namespace
            )
            if table is uploads:
                size = size.where(uploads.c.stored_at.is_not(None))
            queries.append((stats.bytes, kind, size))
        # One connection per query: each sees its own commit, and no reader is blocked for long.
        for numbers, kind, query in queries:
            try:
                numbers[kind] = await self._number(query)
            except StoreUnavailable as error:
                failed = error
        async with self._database.read() as connection:
            first = (await connection.execute(oldest)).scalar_one()
        stats.oldest_unsealed = 0.0 if first is None else max(0.0, (now - first).total_seconds())
        if failed is not None:
            raise failed
        return stats

    async def _number(self, query: Select[Any]) -> int:
        async with self._database.read() as connection:
            return int((await connection.execute(query)).scalar_one())
