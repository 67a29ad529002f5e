"""Writer of run rows, which follow their objects. Called by the projector, run creation and the claims.

One transaction per object. At a run's end it holds the event log's lock: nothing is appended once the
terminal event has its id. An ended row never changes.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import JSON, ColumnElement, Update, and_, bindparam, exists, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningUpdate

from api.store.index.deletion.removed_projects import PROJECT_PRESENT, is_removed
from api.store.index.deletion.tombstones import has_tombstone
from api.store.index.object_versions import read_versions
from api.store.index.runs import counts, inputs, labels, run_columns
from api.store.index.runs.counts import CountKey
from api.store.index.runs.runs import ENDED, LIVE
from api.store.logs.event_logs import EventLogWriter
from api.store.logs.events import Events
from api.store.sql.database import Database, next_ord
from api.store.sql.schema import claims, deployments, projects, removed_projects, runs
from api.store.sql.upsert import insert
from crds import names
from crds.kinds import PROJECT
from crds.objects import Run
from crds.runs import labels as run_labels
from crds.teams.namespaces import place_of
from crds.times import parse_time

_ROW = select(
    runs.c.name,
    runs.c.uid,
    runs.c.version,
    runs.c.project,
    runs.c.deployment,
    runs.c.status,
    runs.c.hidden,
    runs.c.started_at,
    runs.c.created_at,
    runs.c.ord,
    runs.c.labels,
    runs.c.object_namespace,
).where(runs.c.namespace == bindparam("namespace"), runs.c.name == bindparam("name"))


@lru_cache(maxsize=64)
def _update_statement(columns: tuple[str, ...]) -> Update:
    """Return the statement that updates these columns of a row."""
    here = and_(runs.c.namespace == bindparam("of_namespace"), runs.c.name == bindparam("of_name"))
    return update(runs).where(here).values({column: bindparam(column) for column in columns})


@lru_cache(maxsize=8)
def _link_statement(columns: tuple[str, ...]) -> ReturningUpdate[tuple[str]]:
    """Return the statement that links a pending row without an object to its object."""
    removed = exists().where(
        removed_projects.c.namespace == bindparam("of_namespace"),
        removed_projects.c.uid == bindparam("of_owner"),
    )
    # Another project or deployment would move the counters.
    same_parent = [
        runs.c[column] == bindparam(column) for column in ("project", "deployment") if column in columns
    ]
    here = and_(
        runs.c.namespace == bindparam("of_namespace"),
        runs.c.name == bindparam("of_name"),
        runs.c.uid.is_(None),
        runs.c.status == "pending",
        runs.c.hidden.is_(False),
        ~removed,
        *same_parent,
    )
    parameters: dict[str, Any] = {column: bindparam(column) for column in columns}
    return update(runs).where(here).values(parameters).returning(runs.c.name)


class RunWriter:
    """The writer of an installation's run rows."""

    def __init__(self, database: Database, namespace: str, events: Events, max_input_bytes: int) -> None:
        """`max_input_bytes`: limit of an input in an object that other clients create."""
        self._database = database
        self._namespace = namespace
        self._max_input_bytes = max_input_bytes
        self._events = events

    async def observe(self, run: Run, now: datetime) -> bool:
        """Update the row from the object, unless the row is newer.

        Return whether there is one: an object whose name was executed before has none.
        """
        async with self._log(run.name, run.ended) as log:
            # A write that can be repeated from the object need not wait for the disk. An end must: the object
            # is pruned because of it. A cancellation must too: a pod is denied because of it.
            writing = self._database.write() if run.ended else self._database.brief_write(durable=run.cancel)
            async with writing as connection:
                row = await self._own_row(connection, run, now)
                state_changed = row is not None and await self._update_from(connection, row, run, log, now)
            if state_changed:
                self._events.notify_state_changed(run.name)
        return row is not None

    async def link(self, run: Run, now: datetime) -> None:
        """Record the uid of the object that the API created for a row, with one statement.

        The caller has compared the object's input with the row's. Anything but a pending, unlinked row is
        observed instead: the watch was faster, the run was canceled or claimed meanwhile, or its Project was
        deleted.
        """
        columns = run_columns.observed_columns(run, None, now)
        owner = run.owner_uid(PROJECT)
        if columns["status"] == "pending" and not run.cancel and not run.claim and owner is not None:
            here = {"of_namespace": self._namespace, "of_name": run.name, "of_owner": owner}
            values = {**columns, "project_uid": owner}
            async with self._database.brief_write(durable=False) as connection:
                statement = _link_statement(tuple(sorted(values)))
                if (await connection.execute(statement, {**here, **values})).one_or_none() is None:
                    # A pending object needs neither the event log nor a durable write.
                    row = await self._own_row(connection, run, now)
                    if row is not None:
                        await self._update_from(connection, row, run, None, now)
        else:
            await self.observe(run, now)

    async def set_deployment(self, name: str, uid: str, project: str, deployment: str) -> None:
        """Set a run's deployment before its object names it; an existing one stays."""
        async with self._database.write() as connection:
            row = await self._row(connection, name)
            if row is not None and row.uid == uid and row.deployment is None:
                await self._update(connection, row, {"project": project, "deployment": deployment})

    async def mark_deleted(self, name: str, uid: str, now: datetime) -> None:
        """Record that the object is gone: a live run ends as canceled; an ended one is no longer present."""
        async with self._log(name, True) as log:
            async with self._database.write() as connection:
                row = await self._row(connection, name)
                if row is None or row.uid != uid:
                    return
                values: dict[str, Any] = {"present": False}
                if row.status in LIVE:
                    values |= run_columns.deleted_columns(row.started_at, now)
                    values |= await self._terminal_columns(connection, name, values, log)
                await self._update(connection, row, values)
            self._events.notify_state_changed(name)

    async def present(self, place: str | None = None) -> dict[str, tuple[str, int]]:
        """Return uid and resourceVersion, by name, of the runs of one namespace.

        All runs whose object is believed to exist.
        """
        return await self._versions(runs.c.present.is_(True), place)

    async def live(self, place: str | None = None) -> dict[str, tuple[str, int]]:
        """Return the same for all runs that have not ended."""
        # An index has `hidden` before the status; without it, all stored runs are read.
        return await self._versions(runs.c.hidden.in_((False, True)) & runs.c.status.in_(LIVE), place)

    async def _versions(
        self, condition: ColumnElement[bool], place: str | None
    ) -> dict[str, tuple[str, int]]:
        found = runs.c.uid.is_not(None)
        return await read_versions(self._database, self._namespace, runs, place, condition, found)

    async def _own_row(self, connection: AsyncConnection, run: Run, now: datetime) -> Any:
        """Return the row of the object, inserted for a new name; None if another run has the name."""
        row = await self._row(connection, run.name)
        if row is None:
            if await has_tombstone(connection, self._namespace, run.name):
                return None
            await self._insert(connection, run, run.owner_uid(PROJECT), now)
            return await self._row(connection, run.name)
        # Another namespace may have a run of this name.
        is_here = row.object_namespace == place_of(run.namespace, self._namespace)
        return row if is_here and row.uid in (None, run.uid) else None

    async def _update_from(
        self, connection: AsyncConnection, row: Any, run: Run, log: EventLogWriter | None, now: datetime
    ) -> bool:
        """Update the object's row; return whether the run ended with it."""
        if row.uid and row.version >= int(run.resource_version or 0):
            return False
        owner = run.owner_uid(PROJECT)
        values = run_columns.observed_columns(run, row.started_at, now)
        shown = run_labels.shown(run.labels)
        changed_labels = {} if shown == row.labels else {"labels": shown}
        if run.claim and row.started_at is None:
            await self._restore_claim(connection, run)
        if row.uid is None and "inputRef" in run.spec:
            values |= await self._input_mismatch(connection, run)
        if row.status == "running" and values["status"] == "pending":
            # The index knows the claim first; the object follows.
            values["status"] = row.status
        if row.status in ENDED:
            seen = {"uid": run.uid, "version": values["version"], "present": True}
            await self._update(connection, row, {**seen, **changed_labels})
            return False
        values |= changed_labels
        if owner is not None:
            values["project_uid"] = owner
            values["hidden"] = row.hidden or await is_removed(connection, self._namespace, owner)
        if run.ended:
            values |= await self._terminal_columns(connection, run.name, values, log)
        await self._update(connection, row, values)
        return run.ended

    async def _insert(self, connection: AsyncConnection, run: Run, owner: str | None, now: datetime) -> None:
        project = run.project
        if project is None and run.deployment:
            query = select(deployments.c.project).where(
                deployments.c.namespace == self._namespace, deployments.c.name == run.deployment
            )
            project = (await connection.execute(query)).scalar_one_or_none()
        place = place_of(run.namespace, self._namespace)
        query = select(projects.c.uid, projects.c.object_namespace).where(
            projects.c.namespace == self._namespace, projects.c.name == project, PROJECT_PRESENT
        )
        project_row = (await connection.execute(query)).one_or_none()
        # A project of another namespace is not the one that the Run means.
        is_stranger = project_row is not None and project_row.object_namespace != place
        hidden = is_stranger or await is_removed(connection, self._namespace, owner)
        order, shown = await next_ord(connection, self._namespace), run_labels.shown(run.labels)
        if not hidden:
            await labels.add(connection, self._namespace, shown, project or "", run.created, order)
        await connection.execute(
            runs.insert().values(
                namespace=self._namespace,
                name=run.name,
                uid=run.uid,
                ord=order,
                labels=shown,
                version=0,
                project=project or "",
                project_uid=owner or (None if project_row is None or is_stranger else project_row.uid),
                object_namespace=place,
                deployment=run.deployment,
                status="pending",
                hidden=hidden,
                withdrawn=False,
                present=True,
                cancel=False,
                **run_columns.initial_columns(run, self._max_input_bytes),
            )
        )
        if not hidden:
            key = CountKey(project or "", run.deployment, "pending")
            await counts.move(connection, self._namespace, None, key)

    async def _restore_claim(self, connection: AsyncConnection, run: Run) -> None:
        """Restore a claim that the object has but the index has lost: no other pod gets the run.

        The nonce is lost with it: the next request of the pod that holds the run stops it.
        """
        claim = run.claim or {}
        restored = insert(connection, claims).values(
            namespace=self._namespace,
            run=run.name,
            run_uid=run.uid,
            pod_uid=str(claim.get("podUid") or ""),
            nonce="",
            granted_at=parse_time(claim["time"]) if claim.get("time") else run.created,
            answer={"deployment_id": names.id_of(run.deployment) if run.deployment else None},
            written=True,
            result=None if run.result is None else dict(run.result),
            result_written=run.result is not None,
        )
        await connection.execute(restored.on_conflict_do_nothing())

    async def _input_mismatch(self, connection: AsyncConnection, run: Run) -> dict[str, Any]:
        """Return JSON null for the input if the object names another one: the API did not create it then."""
        query = select(runs.c.input).where(runs.c.namespace == self._namespace, runs.c.name == run.name)
        value = (await connection.execute(query)).scalar_one_or_none()
        matches = value is not None and inputs.refers_to(run.spec["inputRef"], value)
        return {} if matches else {"input": JSON.NULL}

    async def _terminal_columns(
        self, connection: AsyncConnection, name: str, values: dict[str, Any], log: EventLogWriter | None
    ) -> dict[str, Any]:
        query = select(claims.c.run).where(claims.c.namespace == self._namespace, claims.c.run == name)
        claimed = (await connection.execute(query)).one_or_none() is not None
        event = run_columns.terminal_event(
            name,
            values["status"],
            values["completed_at"],
            values["duration_ms"],
            values["output"],
            values["error"],
        )
        record_count = await log.seal(connection) if log else 0
        return {"terminal": event, "terminal_id": record_count + 2 if claimed else 1}

    async def _row(self, connection: AsyncConnection, name: str) -> Any:
        here = {"namespace": self._namespace, "name": name}
        return (await connection.execute(_ROW, here)).one_or_none()

    async def _update(self, connection: AsyncConnection, row: Any, values: dict[str, Any]) -> None:
        here = {"of_namespace": self._namespace, "of_name": row.name}
        await connection.execute(_update_statement(tuple(sorted(values))), {**here, **values})
        await self._replace_labels(connection, row, values)
        before = CountKey(row.project, row.deployment, row.status)
        after = CountKey(
            values.get("project", row.project),
            values.get("deployment", row.deployment),
            values.get("status", row.status),
        )
        await counts.move(
            connection,
            self._namespace,
            None if row.hidden else before,
            None if values.get("hidden", row.hidden) else after,
        )

    async def _replace_labels(self, connection: AsyncConnection, row: Any, values: dict[str, Any]) -> None:
        """Replace the rows of a run's labels if they change; a hidden run has none."""
        columns = ("labels", "project", "hidden")
        before = tuple(getattr(row, column) for column in columns)
        after = tuple(values.get(column, getattr(row, column)) for column in columns)
        if before == after or not (before[0] or after[0]):
            return
        shown, project, hidden = after
        await labels.remove(connection, self._namespace, [row.ord])
        if not hidden:
            await labels.add(connection, self._namespace, shown, project, row.created_at, row.ord)

    @asynccontextmanager
    async def _log(self, run: str, needed: bool) -> AsyncIterator[EventLogWriter | None]:
        if not needed:
            yield None
            return
        async with self._events.open_writer(run) as log:
            yield log
