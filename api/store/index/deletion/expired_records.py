"""Which records are kept no longer, and what is left to delete of those that went.

Called by the rounds of `api.projection`: each call is one short transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, func, or_, select

from api.store.index.deletion import tombstones
from api.store.index.runs import counts
from api.store.sql.database import Database
from api.store.sql.schema import archives, artifacts, claims, projects, remains, runs, sequences
from api.store.sql.upsert import insert

BORN = "born"


@dataclass(frozen=True)
class Left:
    """What is left to delete: `kind` is `burial.RUN` or `burial.BUILD`, with the object's name."""

    kind: str
    name: str


class Records:
    """The records of one namespace that end."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def retentions(self) -> dict[str, Mapping[str, Any]]:
        """`spec.retention` of the projects that have one, by name."""
        query = select(projects.c.name, projects.c.spec).where(
            projects.c.namespace == self._namespace, projects.c.spec["retention"].as_string().is_not(None)
        )
        async with self._database.read() as connection:
            return {name: spec["retention"] for name, spec in await connection.execute(query)}

    async def projects(self, after: str | None, limit: int) -> Sequence[str]:
        """Names of projects that have runs, in their order, behind the name `after`."""
        async with self._database.read() as connection:
            return await counts.projects(connection, self._namespace, after, limit)

    async def bury_expired(self, project: str, ended_before: datetime, limit: int, now: datetime) -> int:
        """Buries runs of a project that ended before, whose object is gone and whose use is accounted.

        Gives how many, the oldest first.
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
        return await self._bury(query, now)

    async def bury_hidden(self, before: datetime, limit: int, now: datetime) -> int:
        """Buries what nobody sees: runs that were taken back before; gives how many."""
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
        return await self._bury(query, now)

    async def _bury(self, query: Any, now: datetime) -> int:
        async with self._database.read() as connection:
            if not (await connection.execute(query)).scalars().all():
                return 0
        async with self._database.write() as connection:
            found = (await connection.execute(query)).scalars().all()
            await tombstones.bury(connection, self._namespace, found, now)
        return len(found)

    async def left(self, limit: int) -> list[Left]:
        """What is left to delete of records that went."""
        query = select(remains.c.kind, remains.c.name).where(remains.c.namespace == self._namespace)
        async with self._database.read() as connection:
            return [Left(*row) for row in await connection.execute(query.limit(limit))]

    async def leave_build(self, log: str) -> None:
        """Notes that a build log is to be deleted whose Deployment has no row any more."""
        async with self._database.write() as connection:
            await tombstones.leave(connection, self._namespace, tombstones.BUILD, log)

    async def shrink_artifacts(self, run: str, limit: int) -> bool:
        """Deletes rows of artifacts of a run that went; gives whether none is left."""
        here = (artifacts.c.namespace == self._namespace, artifacts.c.run == run)
        async with self._database.read() as connection:
            names = (
                (await connection.execute(select(artifacts.c.name).where(*here).limit(limit))).scalars().all()
            )
        if names:
            async with self._database.write() as connection:
                await connection.execute(delete(artifacts).where(*here, artifacts.c.name.in_(names)))
        return len(names) < limit

    async def settle(self, found: Sequence[Left]) -> None:
        """Nothing is left of these."""
        async with self._database.write() as connection:
            for kind in {one.kind for one in found}:
                names = [one.name for one in found if one.kind == kind]
                await connection.execute(
                    delete(remains).where(
                        remains.c.namespace == self._namespace,
                        remains.c.kind == kind,
                        remains.c.name.in_(names),
                    )
                )

    async def born(self, now: datetime) -> datetime:
        """Since when this index knows of all blobs: older ones may belong to one that was lost."""
        key = {"namespace": self._namespace, "name": BORN}
        query = select(sequences.c.value).where(*(sequences.c[name] == value for name, value in key.items()))
        async with self._database.read() as connection:
            found = (await connection.execute(query)).scalar_one_or_none()
        if found is None:
            async with self._database.write() as connection:
                first = insert(connection, sequences).values(**key, value=int(now.timestamp()))
                await connection.execute(first.on_conflict_do_nothing())
            return now
        return datetime.fromtimestamp(found, UTC)

    async def blobs(self, names: Sequence[str]) -> tuple[set[str], set[str]]:
        """The keys of the blobs of these runs, and which of the runs may still get more."""
        async with self._database.read() as connection:
            known: set[str] = set()
            for table in (artifacts, archives):
                query = select(table.c.blob).where(
                    table.c.namespace == self._namespace, table.c.run.in_(names)
                )
                known.update((await connection.execute(query)).scalars())
            query = (
                select(runs.c.name)
                .outerjoin(claims, (claims.c.namespace == runs.c.namespace) & (claims.c.run == runs.c.name))
                .where(
                    runs.c.namespace == self._namespace,
                    runs.c.name.in_(names),
                    or_(runs.c.completed_at.is_(None), runs.c.sealed.is_(False)),
                )
            )
            return known, set((await connection.execute(query)).scalars())
