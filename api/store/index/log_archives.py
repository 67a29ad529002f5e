"""Table of archives: the blobs of sealed event logs.

Called by `api.store.logs.event_archive`, which seals and reads them, and by `api.maintenance.seal_logs`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, update

from api.store.sql.database import Database
from api.store.sql.schema import archives, claims, runs
from api.store.sql.upsert import insert


@dataclass(frozen=True)
class ArchiveRow:
    """A sealed log: the key of its blob, its bytes, and the number of lines and bytes of each block."""

    blob: str
    size: int
    blocks: Sequence[Sequence[int]]


@dataclass(frozen=True)
class UnsealedRun:
    """An ended run with a log to seal, and the number of events in it."""

    run: str
    record_count: int


class LogArchives:
    """The archives of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def find(self, run: str) -> ArchiveRow | None:
        """Return the archive of a run's log, or None."""
        query = select(archives.c.blob, archives.c.size, archives.c.blocks).where(
            archives.c.namespace == self._namespace, archives.c.run == run
        )
        async with self._database.read() as connection:
            row = (await connection.execute(query)).one_or_none()
        return ArchiveRow(**row._mapping) if row else None

    async def unsealed(
        self, ended_before: datetime, limit: int, excluded: Collection[str] = ()
    ) -> list[UnsealedRun]:
        """Return ended and accounted runs whose log is not sealed, oldest first, without `excluded`."""
        query = (
            select(runs.c.name, runs.c.terminal_id, claims.c.run)
            .outerjoin(claims, (claims.c.namespace == runs.c.namespace) & (claims.c.run == runs.c.name))
            .where(
                runs.c.namespace == self._namespace,
                runs.c.sealed.is_(False),
                runs.c.completed_at < ended_before,
                runs.c.accounted.is_(True),
                runs.c.terminal_id.is_not(None),
            )
            .order_by(runs.c.completed_at)
            .limit(limit)
        )
        if excluded:
            query = query.where(runs.c.name.not_in(excluded))
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        return [UnsealedRun(name, last - 2 if claimed else 0) for name, last, claimed in rows]

    async def seal(self, run: str, archive: ArchiveRow | None) -> None:
        """Mark a run as sealed; its first archive is kept. None: the run has no events."""
        here = (runs.c.namespace == self._namespace, runs.c.name == run)
        async with self._database.write() as connection:
            changed = update(runs).where(*here).values(sealed=True).returning(runs.c.name)
            updated = (await connection.execute(changed)).one_or_none()
            if updated and archive:
                first = insert(connection, archives).values(
                    namespace=self._namespace,
                    run=run,
                    blob=archive.blob,
                    size=archive.size,
                    blocks=[list(block) for block in archive.blocks],
                    cleared=False,
                )
                await connection.execute(first.on_conflict_do_nothing())

    async def uncleared(self, limit: int, excluded: Collection[str] = ()) -> list[str]:
        """Return runs whose log is sealed and not yet deleted, without `excluded`."""
        query = (
            select(archives.c.run)
            .where(archives.c.namespace == self._namespace, archives.c.cleared.is_(False))
            .limit(limit)
        )
        if excluded:
            query = query.where(archives.c.run.not_in(excluded))
        async with self._database.read() as connection:
            return list((await connection.execute(query)).scalars())

    async def mark_cleared(self, run: str) -> None:
        """Record that the log is deleted and only its archive remains."""
        async with self._database.write() as connection:
            await connection.execute(
                update(archives)
                .where(archives.c.namespace == self._namespace, archives.c.run == run)
                .values(cleared=True)
            )
