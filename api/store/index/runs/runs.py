"""Table of all runs. Called by run creation and the routes of runs; `run_writer` follows the objects."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, ScalarSelect, Select, bindparam, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store import ulid
from api.store.index.deletion.removed_projects import PROJECT_PRESENT
from api.store.index.idempotency import Idempotency, record_use
from api.store.index.runs import counts, filtered_listing, labels, listing
from api.store.index.runs.counts import CountKey
from api.store.index.runs.filtered_listing import RunSelection, Shape
from api.store.page import RowPage
from api.store.sql.database import Database, next_ord
from api.store.sql.schema import deployments, runs
from api.store.sql.schema import idempotency as keys
from api.store.sql.schema import projects as projects_table
from crds import names

LIVE = ("pending", "running")
ENDED = ("succeeded", "failed", "canceled")
MAX_SHORT_OFFSET = 2000
"""Offset up to which skipping rows takes less than a millisecond."""
EVERY_RUN = RunSelection()
Prunable = tuple[tuple[str, str, int, str | None], ...]
"""Of each run the name, uid, last seen resourceVersion and namespace of its object."""


@dataclass(frozen=True)
class RunRow:
    """A run in a list, by its object name (`run-…`). `status` is lower-case, as in /v1."""

    name: str
    ord: int
    project: str
    deployment: str | None
    status: str
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    duration_ms: int | None
    labels: Mapping[str, str] | None
    prompt_tokens: int | None
    """None until the run is accounted, like the two below."""
    completion_tokens: int | None
    artifact_bytes: int | None
    model_tokens: Mapping[str, Sequence[int]] | None
    """Prompt and completion tokens by model; None also if an earlier version accounted the run."""

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self.status in ENDED


@dataclass(frozen=True)
class RunDetail(RunRow):
    """A single run with its input and outcome."""

    uid: str | None
    created_by: str | None
    input: Mapping[str, Any] | None
    """None if the object names an input that the API never received."""
    entrypoint: str | None
    timeout: str | None
    config: Mapping[str, Any] | None
    context: Mapping[str, Any] | None
    rerun_of: str | None
    """The object name of the run that it repeats."""
    traceparent: str | None
    """The span of its caller, checked."""
    admitted_at: datetime | None
    """When it got its slot, in whole seconds; None if no object said so."""
    cancel: bool
    output: Any
    error: Mapping[str, Any] | None
    waiting: Mapping[str, Any] | None
    """Why the run is pending: the condition Admitted or Succeeded, `{reason, message, since}`."""
    object_namespace: str | None = None
    """The namespace of the object; None for the installation's own."""


@dataclass(frozen=True)
class RunRequest:
    """A validated request: project and deployment by object name, both in the index."""

    project: str
    deployment: str
    input: Mapping[str, Any]
    entrypoint: str | None = None
    timeout: str | None = None
    config: Mapping[str, Any] | None = None
    context: Mapping[str, Any] | None = None
    created_by: str | None = None
    labels: Mapping[str, str] | None = None
    rerun_of: str | None = None
    traceparent: str | None = None


@dataclass(frozen=True)
class AcceptedRun:
    """The row of a new run, as inserted, and its project's uid: None if the project is deleted."""

    row: RunDetail
    project_uid: str | None


_LISTED = tuple(field.name for field in fields(RunRow))
_COLUMNS = [runs.c[field.name] for field in fields(RunDetail)]
_BY_NAME = select(*_COLUMNS).where(
    runs.c.namespace == bindparam("namespace"), runs.c.name == bindparam("name"), runs.c.hidden.is_(False)
)


def new_name() -> str:
    """Return a new object name, greater than all earlier ones."""
    return names.RUN_PREFIX + ulid.new()


def _of_project(column: ColumnElement[Any]) -> ScalarSelect[Any]:
    # Separate names: PostgreSQL gives a parameter one type, and the insert's have another.
    return (
        select(column)
        .where(
            projects_table.c.namespace == bindparam("of_namespace"),
            projects_table.c.name == bindparam("of_project"),
            PROJECT_PRESENT,
        )
        .scalar_subquery()
    )


_NEW = (
    runs.insert()
    .values(
        {
            **{
                name: bindparam(name)
                for name in (
                    "namespace",
                    "name",
                    "ord",
                    "project",
                    "deployment",
                    "created_at",
                    "created_by",
                    "input",
                    "entrypoint",
                    "timeout",
                    "config",
                    "context",
                    "labels",
                    "rerun_of",
                    "traceparent",
                )
            },
            "project_uid": _of_project(projects_table.c.uid),
            "object_namespace": _of_project(projects_table.c.object_namespace),
            "version": 0,
            "status": "pending",
            "hidden": False,
            "withdrawn": False,
            "present": True,
            "cancel": False,
        }
    )
    .returning(*_COLUMNS, runs.c.project_uid)
)


def _detail(row: Row[Any]) -> RunDetail:
    return RunDetail(**row._mapping)


class Runs:
    """The runs of an installation."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def get(self, name: str) -> RunDetail | None:
        """Return one run by object name, or None."""
        here = {"namespace": self._namespace, "name": name}
        async with self._database.brief_read() as connection:
            row = (await connection.execute(_BY_NAME, here)).one_or_none()
        return _detail(row) if row else None

    async def page(
        self,
        offset: int,
        limit: int,
        project: str | None = None,
        deployment: str | None = None,
        statuses: Collection[str] | None = None,
        projects: frozenset[str] | None = None,
        selection: RunSelection = EVERY_RUN,
    ) -> RowPage[RunRow]:
        """Return a page, newest first. `deployment` is an object name; `projects` are those a key may see.

        With a `selection`, `total` may be capped.
        """
        if projects is not None:
            visible = projects if project is None else projects & {project}
            if len(visible) == 1:
                (project,), projects = visible, None
        filters: dict[str, Any] = {
            "project": project,
            "deployment": deployment,
            "statuses": None if statuses is None else tuple(sorted(set(statuses))),
            "projects": None if projects is None else sorted(projects),
        }
        if selection:
            return await self._selected_page(offset, limit, filters, selection)
        if statuses is not None and len(filters["statuses"]) == 1:
            filters["status"] = filters.pop("statuses")[0]
        names = listing.active_filters(**filters)
        values = {"namespace": self._namespace, **{name: filters[name] for name in names}}
        brief = offset < MAX_SHORT_OFFSET and listing.has_index(names)
        async with self._database.brief_read() if brief else self._database.read() as connection:
            total = int((await connection.execute(listing.total(names), values)).scalar_one())
            count = max(0, min(limit, total - offset))
            remaining = total - offset - count
            query = listing.page(names, _LISTED, from_oldest=remaining < offset)
            values |= {"offset": min(offset, remaining), "limit": count}
            rows = (await connection.execute(query, values)).all() if count else []
        return RowPage(tuple(RunRow(**row._mapping) for row in rows), total)

    async def _selected_page(
        self, offset: int, limit: int, filters: Mapping[str, Any], selection: RunSelection
    ) -> RowPage[RunRow]:
        names = listing.active_filters(**filters)
        values: dict[str, Any] = {"namespace": self._namespace, **{name: filters[name] for name in names}}
        most = max(limit + 1, filtered_listing.MAX_TOTAL - offset)
        async with self._database.read() as connection:
            labels, start = await self._start(connection, names, values, selection)
            shape = Shape(names | frozenset(selection.times), start, len(labels))
            values |= {f"label_{number}": label for number, label in enumerate(labels)} | selection.times
            query = filtered_listing.orders(shape)
            found = await self._orders(connection, query, {**values, "offset": offset, "limit": most})
            total = offset + len(found)
            if not found and offset:
                total = len(await self._orders(connection, query, {**values, "offset": 0, "limit": offset}))
            query = filtered_listing.rows(_LISTED)
            here = {"namespace": self._namespace, "orders": found[:limit]}
            rows = [RunRow(**row._mapping) for row in await connection.execute(query, here)]
        rows.sort(key=lambda row: (row.created_at, row.ord), reverse=True)
        return RowPage(tuple(rows), total, len(found) == most)

    async def _orders(
        self, connection: AsyncConnection, query: Select[int], values: Mapping[str, Any]
    ) -> Sequence[int]:
        return (await connection.execute(query, values)).scalars().all()

    async def _start(
        self,
        connection: AsyncConnection,
        names: frozenset[str],
        values: Mapping[str, Any],
        selection: RunSelection,
    ) -> tuple[Sequence[str], str]:
        """Return the labels, the rarest first, and where the statement of a page starts."""
        if not names and len(selection.labels) < 2:
            return selection.labels, filtered_listing.choose([1] * len(selection.labels), None, 0)
        here = {"namespace": self._namespace}
        newest, oldest = (await connection.execute(filtered_listing.ends(), here)).one()
        total = newest - oldest + 1
        query = filtered_listing.label_sample(frozenset(selection.times))
        counts = {}
        for label in selection.labels:
            result = await connection.execute(query, {**here, "label": label, **selection.times})
            sampled, oldest_sampled = result.one()
            counts[label] = filtered_listing.estimate(sampled, oldest_sampled, newest, total)
        matching = None
        if names:
            matching = int((await connection.execute(listing.total(names), values)).scalar_one())
        labels = sorted(counts, key=lambda label: counts[label])
        return labels, filtered_listing.choose(list(counts.values()), matching, total)

    async def create(
        self, request: RunRequest, now: datetime, idempotency: Idempotency | None, name: str | None = None
    ) -> tuple[str, AcceptedRun | None]:
        """Insert the row of a new run, without a uid yet; return its name and the row.

        The same idempotency key returns the name that it created, and None. Raises StoreConflict for another
        body. `name` comes from `new_name`.
        """
        name = name or new_name()
        async with self._database.brief_write() as connection:
            if idempotency is not None:
                first = await record_use(connection, self._namespace, idempotency, name, now)
                if first != name:
                    return first, None
            values = {
                "namespace": self._namespace,
                "of_namespace": self._namespace,
                "of_project": request.project,
                "name": name,
                "ord": await next_ord(connection, self._namespace),
                "project": request.project,
                "deployment": request.deployment,
                "created_at": now,
                "created_by": request.created_by,
                "input": dict(request.input),
                "entrypoint": request.entrypoint,
                "timeout": request.timeout,
                "config": request.config,
                "context": request.context,
                "labels": request.labels or None,
                "rerun_of": request.rerun_of,
                "traceparent": request.traceparent,
            }
            inserted = dict((await connection.execute(_NEW, values)).one()._mapping)
            await labels.add(
                connection, self._namespace, request.labels, request.project, now, inserted["ord"]
            )
            place = CountKey(request.project, request.deployment, "pending")
            await counts.move(connection, self._namespace, None, place)
        project_uid = inserted.pop("project_uid")
        return name, AcceptedRun(RunDetail(**inserted), project_uid)

    async def withdraw(self, name: str, now: datetime, object_absent: bool, keep_key: bool = False) -> bool:
        """Withdraw an accepted run: no reader sees it and no pod can claim it. False if it has an object.

        `object_absent`: there is certainly no object; otherwise `unsettled` returns it until
        `mark_object_absent`. `keep_key`: the idempotency key of the run creates no other one.
        """
        async with self._database.write() as connection:
            changed = update(runs).where(
                runs.c.namespace == self._namespace,
                runs.c.name == name,
                runs.c.uid.is_(None),
                runs.c.hidden.is_(False),
            )
            row = (
                await connection.execute(
                    changed.values(
                        withdrawn=True,
                        hidden=True,
                        present=not object_absent,
                        status="canceled",
                        completed_at=now,
                        sealed=True,
                    ).returning(runs.c.project, runs.c.deployment, runs.c.ord, runs.c.created_at)
                )
            ).one_or_none()
            if row:
                place = CountKey(row.project, row.deployment, "pending")
                await counts.move(connection, self._namespace, place, None)
                await labels.remove(connection, self._namespace, [row.ord])
                if not keep_key:
                    # The client may retry the same idempotency key: the withdrawn run does not count.
                    # `create` stored both rows with the same time, of which there is an index.
                    await connection.execute(
                        delete(keys).where(
                            keys.c.namespace == self._namespace,
                            keys.c.created_at == row.created_at,
                            keys.c.name == name,
                        )
                    )
        return row is not None

    async def unsettled(
        self, accepted_before: datetime
    ) -> tuple[list[tuple[str, datetime, str | None]], list[RunDetail]]:
        """Return unfinished creations: withdrawn runs that may have an object (name, time of acceptance,
        namespace of the object), and rows whose object is not created yet.
        """
        query = (
            select(*_COLUMNS, runs.c.withdrawn)
            .where(
                runs.c.namespace == self._namespace,
                runs.c.present.is_(True),
                (runs.c.withdrawn.is_(True)) | (runs.c.uid.is_(None) & runs.c.hidden.is_(False)),
                runs.c.created_at < accepted_before,
            )
            .limit(1000)
        )
        async with self._database.read() as connection:
            rows = [dict(row._mapping) for row in await connection.execute(query)]
        rows.sort(key=lambda row: int(row["ord"]))
        withdrawn = [
            (row["name"], row["created_at"], row["object_namespace"]) for row in rows if row["withdrawn"]
        ]
        accepted = [row for row in rows if not row.pop("withdrawn")]
        return withdrawn, [RunDetail(**row) for row in accepted]

    async def prunable(
        self,
        ended_before: datetime,
        limit: int,
        project: str | None = None,
        excluded_projects: Collection[str] = (),
        excluded_namespaces: Collection[str | None] = (),
    ) -> Prunable:
        """Return name, uid, last seen resourceVersion and namespace of ended runs whose object still exists.

        Oldest first; of one project, or of all except `excluded_projects`, and of no `excluded_namespaces`.
        The controller reads the end of a smoke run from its object: it stays until its deployment has ended.
        """
        building = select(deployments.c.name).where(
            deployments.c.namespace == self._namespace,
            deployments.c.name == runs.c.deployment,
            deployments.c.phase == "building",
        )
        query = (
            select(runs.c.name, runs.c.uid, runs.c.version, runs.c.object_namespace)
            .where(
                runs.c.namespace == self._namespace,
                runs.c.present.is_(True),
                runs.c.status.in_(ENDED),
                runs.c.terminal.is_not(None),
                runs.c.uid.is_not(None),
                runs.c.completed_at < ended_before,
                ~building.exists(),
            )
            .order_by(runs.c.completed_at)
            .limit(limit)
        )
        if project is not None:
            query = query.where(runs.c.project == project)
        if excluded_projects:
            query = query.where(runs.c.project.not_in(excluded_projects))
        for namespace in excluded_namespaces:
            query = query.where(runs.c.object_namespace.is_distinct_from(namespace))
        async with self._database.read() as connection:
            rows = await connection.execute(query)
            return tuple((row.name, row.uid, row.version, row.object_namespace) for row in rows)

    async def mark_object_absent(self, name: str) -> None:
        """Record that a withdrawn run has no object."""
        async with self._database.write() as connection:
            await connection.execute(
                update(runs)
                .where(runs.c.namespace == self._namespace, runs.c.name == name)
                .values(present=False)
            )
