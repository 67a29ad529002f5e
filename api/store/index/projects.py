"""Table of projects, which follow their objects. Called by the projector and the routes of projects."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import partial
from typing import Any

import structlog
from sqlalchemy import bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.errors import StoreUnavailable
from api.store.index import key_bindings
from api.store.index.deletion.delete_project import (
    RUNS_PER_TRANSACTION,
    DeletedProject,
    delete_earlier_runs,
    delete_project,
    delete_run_batch,
)
from api.store.index.deletion.removed_projects import PROJECT_PRESENT, is_removed, mark_removed
from api.store.index.notifications import outbox
from api.store.index.object_versions import read_versions
from api.store.index.runs import hide
from api.store.page import RowPage
from api.store.shared_tasks import SharedTasks
from api.store.sql.database import Database, next_ord
from api.store.sql.notifier import Notifier
from api.store.sql.schema import deployments, projects
from crds import conditions, objects
from crds.teams.namespaces import place_of
from crds.times import parse_time

log = structlog.get_logger()

REMOVAL_WAIT_SECONDS = 1.0
"""Wait of a caller for the removal of a project; that of one with many runs goes on after it."""


@dataclass(frozen=True)
class ProjectRow:
    """A Project. `active` is the active Deployment's object name; `spec` and `status` are the object's."""

    name: str
    uid: str
    ord: int
    created_at: datetime
    created_by: str | None
    active: str | None
    activated_at: datetime | None
    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    failing_notifications: Sequence[str] | None = None
    """Names of notifications whose last delivery was given up."""
    object_namespace: str | None = None
    """The namespace of the object; None for the installation's own."""

    def as_object(self) -> objects.Project:
        """Return the Project with its name, uid and spec, for rules that take an object.

        Its namespace is empty in the installation's own one.
        """
        metadata = {"name": self.name, "uid": self.uid, "namespace": self.object_namespace or ""}
        return objects.Project({"metadata": metadata, "spec": self.spec})


_COLUMNS = [projects.c[field.name] for field in fields(ProjectRow)]
_BY_NAME = select(*_COLUMNS).where(
    projects.c.namespace == bindparam("namespace"), projects.c.name == bindparam("name"), PROJECT_PRESENT
)


class Projects:
    """The projects of an installation. `notifier` fires at every change, `on_removed` at each deleted run."""

    def __init__(
        self,
        database: Database,
        namespace: str,
        notifier: Notifier,
        on_removed: Callable[[str], None] = lambda run: None,
    ) -> None:
        self._database = database
        self._namespace = namespace
        self._notifier = notifier
        self._on_removed = on_removed
        self._removals: SharedTasks[None] = SharedTasks()
        # Removals take turns, so other writers wait for one batch.
        self._removal_turn = asyncio.Lock()
        self._closing = False
        self._skipped: dict[str, objects.Project] = {}

    async def close(self) -> None:
        """End the removals after their current batch; the next list of Projects continues them."""
        self._closing = True
        await self._removals.wait()

    async def get(self, name: str) -> ProjectRow | None:
        """Return one project, or None."""
        here = {"namespace": self._namespace, "name": name}
        async with self._database.brief_read() as connection:
            row = (await connection.execute(_BY_NAME, here)).one_or_none()
        return ProjectRow(**row._mapping) if row else None

    async def page(self, offset: int, limit: int, names: frozenset[str] | None = None) -> RowPage[ProjectRow]:
        """Return a page, newest first; with `names`, of these only (an API key bound to projects)."""
        query = select(*_COLUMNS).where(projects.c.namespace == self._namespace, PROJECT_PRESENT)
        if names is not None:
            query = query.where(projects.c.name.in_(sorted(names)))
        async with self._database.brief_read() as connection:
            count = select(func.count()).select_from(query.subquery())
            total = int((await connection.execute(count)).scalar_one())
            query = query.order_by(projects.c.ord.desc()).offset(offset).limit(limit)
            rows = (await connection.execute(query)).all()
        return RowPage(tuple(ProjectRow(**row._mapping) for row in rows), total)

    async def with_budget(self) -> Sequence[ProjectRow]:
        """Return the projects that have a budget."""
        query = select(*_COLUMNS).where(
            projects.c.namespace == self._namespace,
            projects.c.spec["budget"].as_string().is_not(None),
            PROJECT_PRESENT,
        )
        async with self._database.read() as connection:
            return [ProjectRow(**row._mapping) for row in await connection.execute(query)]

    async def with_failing_notifications(self) -> Sequence[ProjectRow]:
        """Return the projects with a failing notification, and those whose object still says so."""
        condition = projects.c.status["conditions"].as_string().contains(conditions.NOTIFICATIONS_FAILING)
        query = select(*_COLUMNS).where(
            projects.c.namespace == self._namespace,
            projects.c.failing_notifications.is_not(None) | condition,
            PROJECT_PRESENT,
        )
        async with self._database.read() as connection:
            return [ProjectRow(**row._mapping) for row in await connection.execute(query)]

    async def plans(self, names: frozenset[str] | None) -> frozenset[str]:
        """Return the plans of these projects, or of all."""
        plan = projects.c.spec["plan"].as_string()
        query = select(plan).where(projects.c.namespace == self._namespace, PROJECT_PRESENT)
        if names is not None:
            query = query.where(projects.c.name.in_(sorted(names)))
        async with self._database.read() as connection:
            plans = (await connection.execute(query.distinct())).scalars().all()
        return frozenset(plan or objects.DEFAULT_PLAN for plan in plans)

    async def places(self) -> dict[str, str | None]:
        """Return the namespace of each project, None for the installation's own."""
        query = select(projects.c.name, projects.c.object_namespace).where(
            projects.c.namespace == self._namespace, PROJECT_PRESENT
        )
        async with self._database.brief_read() as connection:
            return {row.name: row.object_namespace for row in await connection.execute(query)}

    async def resource_versions(self, place: str | None = None) -> dict[str, tuple[str, int]]:
        """Return uid and last seen resourceVersion, by name, of the rows of one namespace."""
        return await read_versions(self._database, self._namespace, projects, place)

    async def observe(self, project: objects.Project) -> None:
        """Update the row from the object, unless the row is newer.

        Call it with the apiserver's response to a create or patch: the next reader then sees the change. An
        object of another uid under the same name first deletes everything that belonged to the old one. If
        that takes longer than REMOVAL_WAIT_SECONDS, a task stores the object after it. Of two namespaces with
        a project of this name, the older project is stored.
        """
        version = int(project.resource_version or 0)
        place = place_of(project.namespace, self._namespace)
        async with self._database.read() as connection:
            row = await self._newer(connection, project)
        if row and row.uid not in (None, project.uid):
            now, lost_name = datetime.now(UTC), row.object_namespace != place
            if not await self.remove(project.name, row.uid, now, lost_name):
                skipped = self._skipped.get(project.name)
                if skipped is None or int(skipped.resource_version or 0) < version:
                    self._skipped[project.name] = project
                self._removals.start(f"skipped {project.name}", partial(self._observe_skipped, project.name))
                return
        if row and row.uid is None:
            await self._delete_earlier_runs(project)
            await self._hide_runs_elsewhere(project.name, place)
        async with self._database.write() as connection:
            row = await self._newer(connection, project)
            if row is None:
                return
            if row.uid not in (None, project.uid):
                raise StoreUnavailable(f"the project {project.name} is being replaced; try again")
            activated = project.status.get("activatedAt")
            activated_at = parse_time(activated) if activated else None
            values = {
                "uid": project.uid,
                "version": version,
                "created_at": project.created,
                "created_by": project.created_by,
                "active": project.active,
                "activated_at": activated_at,
                "spec": dict(project.spec),
                "status": dict(project.status),
            }
            key = {"namespace": self._namespace, "name": project.name}
            if row.uid:
                await connection.execute(
                    update(projects).where(*(projects.c[k] == v for k, v in key.items())).values(**values)
                )
            else:
                # Those that were observed meanwhile.
                await hide.hide_batch(connection, self._namespace, project.name, place)
                order = await next_ord(connection, self._namespace)
                await connection.execute(
                    projects.insert().values(**key, **values, ord=order, object_namespace=place)
                )
                await key_bindings.bind(connection, self._namespace, project.name, project.uid)
            if project.active and activated_at:
                await self._set_activated_at(connection, project.active, activated_at)
                if project.active != row.active:
                    event = outbox.ProjectEvent("deployment.active", project.active, activated_at)
                    await outbox.record_event(
                        connection, self._namespace, project.name, project.uid, event, datetime.now(UTC)
                    )
        self._notifier.notify("deployments")

    async def _observe_skipped(self, name: str) -> None:
        """Observe the newest of the objects of that name that a removal delays; each try waits for it."""
        while not self._closing and (project := self._skipped.pop(name, None)):
            try:
                await self.observe(project)
            except StoreUnavailable:
                self._skipped.setdefault(name, project)
                await asyncio.sleep(REMOVAL_WAIT_SECONDS)

    async def remove(self, name: str, uid: str, now: datetime, lost_name: bool = False) -> bool:
        """Mark the project and start its removal; return whether that ended within REMOVAL_WAIT_SECONDS.

        Raises what it raises.
        """
        if not lost_name:
            await self._mark(name, uid, now)
        removal = self.start_removal(name, uid, now, lost_name)
        ended, _ = await asyncio.wait((removal,), timeout=REMOVAL_WAIT_SECONDS)
        for task in ended:
            task.result()
        return bool(ended)

    def start_removal(
        self, name: str, uid: str, now: datetime, lost_name: bool = False
    ) -> asyncio.Task[None]:
        """Return the task that deletes the row of a deleted object, one per uid.

        `lost_name`: the object exists, and is stored again once it gets its name back.
        """
        skipped = self._skipped.get(name)
        if skipped is not None and skipped.uid == uid:
            del self._skipped[name]
        remove = partial(self._remove, name, uid, now, lost_name)
        return self._removals.start(f"{uid} {lost_name}", remove)

    async def _remove(self, name: str, uid: str, now: datetime, lost_name: bool) -> None:
        try:
            await self._remove_batches(name, uid, now, lost_name)
        except Exception as error:
            log.warning("project not removed", project=name, error=repr(error))
            raise

    async def _mark(self, name: str, uid: str, now: datetime) -> bool:
        """Hide the project from all readers and revoke its keys. Return False if it was removed before."""
        async with self._database.write() as connection:
            holder = (await self._stored(connection, name)).uid
            if await is_removed(connection, self._namespace, uid):
                return bool(holder == uid)
            await mark_removed(connection, self._namespace, name, uid, now)
            if holder in (None, uid):
                await key_bindings.revoke(connection, self._namespace, name, uid, now)
        self._notifier.notify("deployments")
        return True

    async def _remove_batches(self, name: str, uid: str, now: datetime, lost_name: bool) -> None:
        """Delete the row with its deployments; its runs leave only tombstones.

        The row is deleted last, with the last of the runs: after a crash it is found again, and no other
        project of that name is stored until then. A repeated call changes nothing. Rows without an owner, and
        all uploads, belong to the project that holds the name.
        """
        done = not lost_name and not await self._mark(name, uid, now)
        while not done and not self._closing:
            async with self._removal_turn, self._database.write() as connection:
                holder = (await self._stored(connection, name)).uid
                if lost_name and holder != uid:
                    return
                gone = DeletedProject(self._namespace, name, uid, holds_name=holder in (None, uid))
                removed = await delete_run_batch(connection, gone, now)
                done = len(removed) < RUNS_PER_TRANSACTION
                if done:
                    await delete_project(connection, gone)
                    if lost_name:
                        await key_bindings.revoke(connection, self._namespace, name, uid, now)
            for run in removed:
                self._on_removed(run)
        self._notifier.notify("deployments")

    async def _delete_earlier_runs(self, project: objects.Project) -> None:
        """Delete the runs that failed because there was no project of that name: they are not of this one."""
        done = False
        while not done:
            async with self._database.write() as connection:
                removed = await delete_earlier_runs(
                    connection, self._namespace, project.name, project.created, datetime.now(UTC)
                )
            done = len(removed) < RUNS_PER_TRANSACTION
            for run in removed:
                self._on_removed(run)

    async def _hide_runs_elsewhere(self, name: str, place: str | None) -> None:
        """Hide the runs in other namespaces that named a project before it existed."""
        done = False
        while not done:
            async with self._database.write() as connection:
                hidden = await hide.hide_batch(connection, self._namespace, name, place)
            done = hidden < hide.RUNS_PER_TRANSACTION

    async def _newer(self, connection: AsyncConnection, project: objects.Project) -> Any:
        """Return what is stored under the name, uid None if nothing.

        None if the object is not newer, or its name belongs to a project of another namespace.
        """
        if await is_removed(connection, self._namespace, project.uid):
            return None
        row = await self._stored(connection, project.name)
        if row.uid is not None and row.object_namespace != place_of(project.namespace, self._namespace):
            return row if (project.created, project.uid) < (row.created_at, row.uid) else None
        ready = conditions.find(project.conditions, conditions.READY) or {}
        if row.uid is None and ready.get("reason") == conditions.NAME_TAKEN:
            return None
        return row if row.version < int(project.resource_version or 0) else None

    async def _stored(self, connection: AsyncConnection, name: str) -> Any:
        query = select(
            func.max(projects.c.uid).label("uid"),
            func.coalesce(func.max(projects.c.version), -1).label("version"),
            func.max(projects.c.active).label("active"),
            func.max(projects.c.created_at).label("created_at"),
            func.max(projects.c.object_namespace).label("object_namespace"),
        ).where(projects.c.namespace == self._namespace, projects.c.name == name)
        return (await connection.execute(query)).one()

    async def _set_activated_at(
        self, connection: AsyncConnection, deployment: str, activated_at: Any
    ) -> None:
        # Stored in the deployment's own row: it is still known when another one is active.
        await connection.execute(
            update(deployments)
            .where(deployments.c.namespace == self._namespace, deployments.c.name == deployment)
            .values(activated_at=activated_at)
        )
