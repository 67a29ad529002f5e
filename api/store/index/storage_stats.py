"""How much is kept: rows and bytes, for the metrics. Measured by `api.maintenance.loops`, shown by `api.app`."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select

from api.store.sql.database import Database
from api.store.sql.schema import archives, artifacts, remains, run_counts, runs, tombstones, uploads

ROWS = ("run", "sealed", "tombstone", "artifact", "upload", "remains")
BYTES = ("artifact", "upload", "events")


@dataclass
class Holdings:
    """What there was at the last look; nothing before the first, and in replicas that do not lead."""

    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROWS, 0))
    bytes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BYTES, 0))
    oldest_unsealed: float = 0.0
    """Seconds since the end of the first run whose log is not sealed."""


class Measure:
    """Looks at the tables of one namespace; `last` is what was seen."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace
        self.last = Holdings()

    async def look(self, now: datetime) -> Holdings:
        """Counts anew. Raises StoreUnavailable."""
        found = Holdings()
        shown = select(func.coalesce(func.sum(run_counts.c.count), 0))
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
        # One query a connection: each sees its own commit, and no reader is kept for long.
        found.rows["run"] = await self._number(shown.where(run_counts.c.namespace == self._namespace))
        for kind, table in counted.items():
            query = select(func.count()).select_from(table).where(table.c.namespace == self._namespace)
            found.rows[kind] = await self._number(query)
        for kind, table in summed.items():
            held = select(func.coalesce(func.sum(table.c.size), 0)).where(
                table.c.namespace == self._namespace
            )
            if table is uploads:
                held = held.where(uploads.c.stored_at.is_not(None))
            found.bytes[kind] = await self._number(held)
        async with self._database.read() as connection:
            first = (await connection.execute(oldest)).scalar_one()
        found.oldest_unsealed = 0.0 if first is None else max(0.0, (now - first).total_seconds())
        self.last = found
        return found

    async def _number(self, query: Select[Any]) -> int:
        async with self._database.read() as connection:
            return int((await connection.execute(query)).scalar_one())
