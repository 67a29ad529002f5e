"""Projects as rows: they follow the objects. Called by the projector and the routes of projects."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.errors import StoreUnavailable
from api.store.index.deletion.delete_project import bury_runs, is_removed, remove_project
from api.store.page import Page
from api.store.sql.database import Database, next_ord
from api.store.sql.notifier import Signals
from api.store.sql.schema import deployments, projects
from crds import objects
from crds.times import parse_time


@dataclass(frozen=True)
class ProjectRow:
    """A Project. `active` is the active Deployment's object name; `spec`, `status` are the object's."""

    name: str
    uid: str
    ord: int
    created_at: datetime
    active: str | None
    activated_at: datetime | None
    spec: Mapping[str, Any]
    status: Mapping[str, Any]


_WHOLE = [projects.c[field.name] for field in fields(ProjectRow)]
_ONE = select(*_WHOLE).where(
    projects.c.namespace == bindparam("namespace"), projects.c.name == bindparam("name")
)


class Projects:
    """The table of projects of one namespace. `signals` rings at every change."""

    def __init__(self, database: Database, namespace: str, signals: Signals) -> None:
        self._database = database
        self._namespace = namespace
        self._signals = signals

    async def get(self, name: str) -> ProjectRow | None:
        """One project, or None."""
        here = {"namespace": self._namespace, "name": name}
        async with self._database.brief_read() as connection:
            row = (await connection.execute(_ONE, here)).one_or_none()
        return ProjectRow(**row._mapping) if row else None

    async def page(self, offset: int, limit: int, names: frozenset[str] | None = None) -> Page[ProjectRow]:
        """A page, newest first; with `names`, of these only (a key bound to projects)."""
        query = select(*_WHOLE).where(projects.c.namespace == self._namespace)
        if names is not None:
            query = query.where(projects.c.name.in_(sorted(names)))
        async with self._database.brief_read() as connection:
            count = select(func.count()).select_from(query.subquery())
            total = int((await connection.execute(count)).scalar_one())
            query = query.order_by(projects.c.ord.desc()).offset(offset).limit(limit)
            rows = (await connection.execute(query)).all()
        return Page(tuple(ProjectRow(**row._mapping) for row in rows), total)

    async def plans(self, names: frozenset[str] | None) -> frozenset[str]:
        """The plans of these projects, or of all."""
        query = select(projects.c.spec["plan"].as_string()).where(projects.c.namespace == self._namespace)
        if names is not None:
            query = query.where(projects.c.name.in_(sorted(names)))
        async with self._database.read() as connection:
            found = (await connection.execute(query.distinct())).scalars().all()
        return frozenset(plan or "free" for plan in found)

    async def known(self) -> dict[str, tuple[str, int]]:
        """uid and last seen resourceVersion, by name, of all rows."""
        query = select(projects.c.name, projects.c.uid, projects.c.version).where(
            projects.c.namespace == self._namespace
        )
        async with self._database.read() as connection:
            return {row.name: (row.uid, row.version) for row in await connection.execute(query)}

    async def observe(self, project: objects.Project) -> None:
        """The row becomes what the object says, unless a newer version of it is known already.

        Call it with the apiserver's answer to a create or patch, so that the next reader sees it. An object
        of another uid under the same name first removes all that belonged to the old one.
        """
        version = int(project.resource_version or 0)
        async with self._database.read() as connection:
            row = await self._news(connection, project)
        if row and row.uid not in (None, project.uid):
            await self.remove(project.name, row.uid, datetime.now(UTC))
        async with self._database.write() as connection:
            row = await self._news(connection, project)
            if row is None:
                return
            if row.uid not in (None, project.uid):
                raise StoreUnavailable(f"the project {project.name} is being replaced; try again")
            activated = project.status.get("activatedAt")
            values = {
                "uid": project.uid,
                "version": version,
                "created_at": project.created,
                "active": project.active,
                "activated_at": parse_time(activated) if activated else None,
                "spec": dict(project.spec),
                "status": dict(project.status),
            }
            key = {"namespace": self._namespace, "name": project.name}
            if row.uid:
                await connection.execute(
                    update(projects).where(*(projects.c[k] == v for k, v in key.items())).values(**values)
                )
            else:
                order = await next_ord(connection, self._namespace)
                await connection.execute(projects.insert().values(**key, **values, ord=order))
            if project.active and values["activated_at"]:
                await self._stamp(connection, project.active, values["activated_at"])
        self._signals.ring("deployments")

    async def remove(self, name: str, uid: str, now: datetime) -> None:
        """The object is gone: the row goes with its deployments; its runs leave only tombstones.

        The row goes last, with the last of the runs: a crash before leaves it to be found, and nothing of
        another project of that name is shown until then. Told of it again, it touches nothing: what has no
        owner yet, and every upload, is by then of another project of that name.
        """
        done = False
        while not done:
            async with self._database.write() as connection:
                if await is_removed(connection, self._namespace, uid):
                    return
                done = await bury_runs(connection, self._namespace, name, uid, now)
                if done:
                    await remove_project(connection, self._namespace, name, uid, now)
        self._signals.ring("deployments")

    async def _news(self, connection: AsyncConnection, project: objects.Project) -> Any:
        """What is known of the name, uid None where nothing is; None where the object is no news."""
        if await is_removed(connection, self._namespace, project.uid):
            return None
        version = int(project.resource_version or 0)
        query = select(
            func.max(projects.c.uid).label("uid"),
            func.coalesce(func.max(projects.c.version), -1).label("version"),
        ).where(projects.c.namespace == self._namespace, projects.c.name == project.name)
        row = (await connection.execute(query)).one()
        return row if row.version < version else None

    async def _stamp(self, connection: AsyncConnection, deployment: str, activated_at: Any) -> None:
        # Kept in the deployment's own row, so that it stays known once another one is active.
        await connection.execute(
            update(deployments)
            .where(deployments.c.namespace == self._namespace, deployments.c.name == deployment)
            .values(activated_at=activated_at)
        )
