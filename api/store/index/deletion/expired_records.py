"""Deletion of expired records and of the data that they leave behind.

Called by the maintenance loops: each call is one short transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, func, or_, select

from api.store.index.deletion import tombstones
from api.store.index.runs import counts
from api.store.sql.database import Database
from api.store.sql.schema import archives, artifacts, claims, projects, remains, runs, sequences
from api.store.sql.upsert import insert
from crds.objects import DEFAULT_PLAN

TRACKING_START = "born"


@dataclass(frozen=True)
class Remains:
    """Data left to delete: `kind` is `tombstones.RUN` or `tombstones.BUILD`, with the object's name."""

    kind: str
    name: str


@dataclass(frozen=True)
class ProjectRetention:
    """What decides on the retention of a project: its plan, and `spec.retention` as it asks for it."""

    plan: str = DEFAULT_PLAN
    asked: Mapping[str, Any] = field(default_factory=dict)


class ExpiredRecords:
    """The expiring records of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def retentions(self, every_project: bool = False) -> dict[str, ProjectRetention]:
        """Return plan and `spec.retention` by name, of every project or of those that have a retention."""
        spec = projects.c.spec
        query = select(projects.c.name, spec["plan"].as_string(), spec["retention"])
        query = query.where(projects.c.namespace == self._namespace)
        if not every_project:
            query = query.where(spec["retention"].as_string().is_not(None))
        async with self._database.read() as connection:
            return {
                name: ProjectRetention(plan or DEFAULT_PLAN, asked or {})
                for name, plan, asked in await connection.execute(query)
            }

    async def projects(self, after: str | None, limit: int) -> Sequence[str]:
        """Return names of projects with runs, sorted, after the name `after`."""
        async with self._database.read() as connection:
            return await counts.projects(connection, self._namespace, after, limit)

    async def delete_expired_runs(
        self, project: str, ended_before: datetime, limit: int, now: datetime
    ) -> int:
        """Delete runs of a project that ended before, whose object is gone and whose usage is accounted.

        Return how many; the oldest first.
        """
        query = (
            select(runs.c.name)
            .where(
                runs.c.namespace == self._namespace,
                runs.c.project == project,
                runs.c.completed_at < ended_before,
                runs.c.present.is_(False),
                runs.c.accounted.is_(True),
            )
            .order_by(runs.c.completed_at)
            .limit(limit)
        )
        return await self._delete_runs(query, now)

    async def delete_run(self, name: str, now: datetime) -> None:
        """Delete a run that has ended and is accounted, and whose object its caller has deleted.

        `present` is not asked: the watch may see the deletion later.
        """
        query = select(runs.c.name).where(
            runs.c.namespace == self._namespace,
            runs.c.name == name,
            runs.c.completed_at.is_not(None),
            runs.c.accounted.is_(True),
        )
        await self._delete_runs(query, now)

    async def delete_hidden_runs(self, before: datetime, limit: int, now: datetime) -> int:
        """Delete hidden runs that were withdrawn before; return how many."""
        query = (
            select(runs.c.name)
            .where(
                runs.c.namespace == self._namespace,
                runs.c.hidden.is_(True),
                or_(runs.c.present.is_(False), runs.c.withdrawn.is_(False)),
                func.coalesce(runs.c.completed_at, runs.c.created_at) < before,
            )
            .order_by(runs.c.ord)
            .limit(limit)
        )
        return await self._delete_runs(query, now)

    async def _delete_runs(self, query: Any, now: datetime) -> int:
        async with self._database.read() as connection:
            if not (await connection.execute(query)).scalars().all():
                return 0
        async with self._database.write() as connection:
            names = (await connection.execute(query)).scalars().all()
            await tombstones.delete_runs(connection, self._namespace, names, now)
        return len(names)

    async def list_remains(self, limit: int) -> list[Remains]:
        """Return the data that deleted records have left."""
        query = select(remains.c.kind, remains.c.name).where(remains.c.namespace == self._namespace)
        async with self._database.read() as connection:
            return [Remains(*row) for row in await connection.execute(query.limit(limit))]

    async def note_build_log(self, log: str) -> None:
        """Note a build log for deletion whose Deployment has no row any more."""
        async with self._database.write() as connection:
            await tombstones.note_remains(connection, self._namespace, tombstones.BUILD, log)

    async def delete_artifact_batch(self, run: str, limit: int) -> bool:
        """Delete artifact rows of a deleted run; return whether none is left."""
        here = (artifacts.c.namespace == self._namespace, artifacts.c.run == run)
        async with self._database.read() as connection:
            names = (
                (await connection.execute(select(artifacts.c.name).where(*here).limit(limit))).scalars().all()
            )
        if names:
            async with self._database.write() as connection:
                await connection.execute(delete(artifacts).where(*here, artifacts.c.name.in_(names)))
        return len(names) < limit

    async def delete_remains(self, deleted: Sequence[Remains]) -> None:
        """Delete the notes of data that is deleted now."""
        async with self._database.write() as connection:
            for kind in {item.kind for item in deleted}:
                names = [item.name for item in deleted if item.kind == kind]
                await connection.execute(
                    delete(remains).where(
                        remains.c.namespace == self._namespace,
                        remains.c.kind == kind,
                        remains.c.name.in_(names),
                    )
                )

    async def tracking_start(self, now: datetime) -> datetime:
        """Return when this index began to track all blobs; older ones may belong to a lost index."""
        key = {"namespace": self._namespace, "name": TRACKING_START}
        query = select(sequences.c.value).where(*(sequences.c[name] == value for name, value in key.items()))
        async with self._database.read() as connection:
            value = (await connection.execute(query)).scalar_one_or_none()
        if value is None:
            async with self._database.write() as connection:
                first = insert(connection, sequences).values(**key, value=int(now.timestamp()))
                await connection.execute(first.on_conflict_do_nothing())
            return now
        return datetime.fromtimestamp(value, UTC)

    async def run_blobs(self, names: Sequence[str]) -> tuple[set[str], set[str]]:
        """Return the blob keys of these runs, and which of the runs may still get more."""
        async with self._database.read() as connection:
            keys: set[str] = set()
            for table in (artifacts, archives):
                query = select(table.c.blob).where(
                    table.c.namespace == self._namespace, table.c.run.in_(names)
                )
                keys.update((await connection.execute(query)).scalars())
            query = (
                select(runs.c.name)
                .outerjoin(claims, (claims.c.namespace == runs.c.namespace) & (claims.c.run == runs.c.name))
                .where(
                    runs.c.namespace == self._namespace,
                    runs.c.name.in_(names),
                    or_(runs.c.completed_at.is_(None), runs.c.sealed.is_(False)),
                )
            )
            return keys, set((await connection.execute(query)).scalars())
