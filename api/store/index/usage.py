"""Usage of projects by UTC day. Written by `api.store.accounting`, read by the routes of usage.

A run and a build count on the day they ended. Each is accounted once: the mark on its row and the sum change
in one transaction.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import ScalarSelect, Table, bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.deployments.build_times import FINISHED_PHASES, EndedBuild
from api.store.index.notifications.outbox import ProjectEvent, record_event
from api.store.index.runs.runs import ENDED, RunRow
from api.store.index.trace_exports import BUILD, RUN, TraceExports
from api.store.sql.database import Database
from api.store.sql.schema import WITHOUT_USAGE, artifacts, deployments, projects, runs, usage_days
from api.store.sql.upsert import insert


@dataclass(frozen=True)
class Measures:
    """Amounts used: counts, milliseconds, bytes, tokens."""

    runs: int = 0
    run_ms: int = 0
    build_ms: int = 0
    artifact_bytes: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Measures") -> "Measures":
        return Measures(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Measures)))


@dataclass(frozen=True)
class EndedRun:
    """A run to be accounted; `claimed`: it may have events."""

    name: str
    claimed: bool


@dataclass(frozen=True)
class UnmeasuredRun(EndedRun):
    """A run that is accounted, but whose row lacks what it used."""

    ord: int


def used_by(row: RunRow) -> Measures | None:
    """Return what a run used, without the build of its image; None until it is accounted."""
    if row.prompt_tokens is None:
        return None
    return Measures(
        runs=1,
        run_ms=row.duration_ms or 0,
        artifact_bytes=row.artifact_bytes or 0,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens or 0,
    )


class Usage:
    """The usage of one namespace."""

    def __init__(self, database: Database, namespace: str, traces: TraceExports) -> None:
        self._database = database
        self._namespace = namespace
        self._traces = traces

    async def days(self, project_uid: str, first: date, last: date) -> dict[date, Measures]:
        """Return the usage on each day of a range, without the days that have none."""
        columns = [usage_days.c[f.name] for f in fields(Measures)]
        query = select(usage_days.c.day, *columns).where(
            usage_days.c.namespace == self._namespace,
            usage_days.c.project_uid == project_uid,
            usage_days.c.day.between(first.isoformat(), last.isoformat()),
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        return {date.fromisoformat(day): Measures(*values) for day, *values in rows}

    async def totals(self, project_uids: Collection[str], first: date, last: date) -> dict[str, Measures]:
        """Return the usage of each of these projects in a range of days, without those that have none."""
        sums = [func.sum(usage_days.c[f.name]) for f in fields(Measures)]
        query = (
            select(usage_days.c.project_uid, *sums)
            .where(
                usage_days.c.namespace == self._namespace,
                usage_days.c.project_uid.in_(sorted(project_uids)),
                usage_days.c.day.between(first.isoformat(), last.isoformat()),
            )
            .group_by(usage_days.c.project_uid)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        return {uid: Measures(*map(int, values)) for uid, *values in rows}

    async def ended_runs(
        self, limit: int, name: str | None = None, excluded: Collection[str] = ()
    ) -> list[EndedRun]:
        """Return up to `limit` ended runs that are not accounted, without `excluded`, or the one `name`."""
        query = (
            select(runs.c.name, runs.c.started_at)
            .where(runs.c.namespace == self._namespace, runs.c.accounted.is_(False), runs.c.status.in_(ENDED))
            .limit(limit)
        )
        if name is not None:
            query = query.where(runs.c.name == name)
        if excluded:
            query = query.where(runs.c.name.not_in(excluded))
        async with self._database.read() as connection:
            return [EndedRun(name, started is not None) for name, started in await connection.execute(query)]

    async def account_run(self, name: str, prompt_tokens: int, completion_tokens: int) -> None:
        """Add a run's usage to its row and its project's day, and record its end, unless it is accounted."""
        tokens = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
        async with self._database.write() as connection:
            row = await self._mark(connection, runs, name, **tokens, artifact_bytes=self._artifact_bytes())
            if row is None or row.hidden or row.completed_at is None:
                return
            used = Measures(
                runs=1, run_ms=row.duration_ms or 0, artifact_bytes=int(row.artifact_bytes), **tokens
            )
            await add_usage(connection, self._namespace, row, row.completed_at, used)
            now = datetime.now(UTC)
            await self._record(
                connection, row, ProjectEvent(f"run.{row.status}", name, row.completed_at), now
            )
            await self._traces.add(connection, RUN, name, row.completed_at, now)

    async def unmeasured_runs(self, below: int, limit: int) -> list[UnmeasuredRun]:
        """Return up to `limit` accounted runs without their usage in their row, the newest first.

        Only runs that an earlier version accounted; `below` is the order above the first one.
        """
        query = (
            select(runs.c.name, runs.c.started_at, runs.c.ord)
            .where(runs.c.namespace == self._namespace, runs.c.ord < below, WITHOUT_USAGE)
            .order_by(runs.c.ord.desc())
            .limit(limit)
        )
        async with self._database.read() as connection:
            rows = await connection.execute(query)
            return [UnmeasuredRun(name, started is not None, order) for name, started, order in rows]

    async def record_usage(self, tokens: Mapping[str, tuple[int, int]]) -> None:
        """Record the prompt and completion tokens, by name, of runs that are accounted already."""
        changed = (
            update(runs)
            .where(runs.c.namespace == self._namespace, runs.c.name == bindparam("of_name"), WITHOUT_USAGE)
            .values(
                prompt_tokens=bindparam("prompt"),
                completion_tokens=bindparam("completion"),
                artifact_bytes=self._artifact_bytes(),
            )
        )
        values = [{"of_name": name, "prompt": p, "completion": c} for name, (p, c) in tokens.items()]
        if values:
            async with self._database.write() as connection:
                await connection.execute(changed, values)

    def _artifact_bytes(self) -> ScalarSelect[int]:
        """Return the expression of the bytes of a run's artifacts."""
        return (
            select(func.coalesce(func.sum(artifacts.c.size), 0))
            .where(artifacts.c.namespace == self._namespace, artifacts.c.run == runs.c.name)
            .scalar_subquery()
        )

    async def ended_builds(self, limit: int) -> list[EndedBuild]:
        """Return up to `limit` deployments with a finished build that is not accounted."""
        query = (
            select(deployments.c.name, deployments.c.building_at, deployments.c.conditions)
            .where(
                deployments.c.namespace == self._namespace,
                deployments.c.accounted.is_(False),
                deployments.c.phase.in_(FINISHED_PHASES),
            )
            .limit(limit)
        )
        async with self._database.read() as connection:
            return [EndedBuild(a, b, tuple(c)) for a, b, c in await connection.execute(query)]

    async def account_build(self, name: str, ended_at: datetime, build_ms: int) -> None:
        """Add a build's time to its project's day and record its failure, unless it is accounted already."""
        async with self._database.write() as connection:
            row = await self._mark(connection, deployments, name)
            if row is not None:
                now = datetime.now(UTC)
                await add_usage(connection, self._namespace, row, ended_at, Measures(build_ms=build_ms))
                await self._traces.add(connection, BUILD, name, ended_at, now)
                if row.phase == "failed":
                    await self._record(
                        connection, row, ProjectEvent("deployment.failed", name, ended_at), now
                    )

    async def _record(
        self, connection: AsyncConnection, row: Any, event: ProjectEvent, now: datetime
    ) -> None:
        await record_event(connection, self._namespace, row.project, row.project_uid, event, now)

    async def _mark(self, connection: AsyncConnection, table: Table, name: str, **changed: Any) -> Any:
        """Mark a row as accounted and return it; None if it was marked before, or is deleted."""
        marked = (
            update(table)
            .where(table.c.namespace == self._namespace, table.c.name == name, table.c.accounted.is_(False))
            .values(accounted=True, **changed)
            .returning(*table.c)
        )
        return (await connection.execute(marked)).one_or_none()


async def add_usage(
    connection: AsyncConnection, namespace: str, row: Any, at: datetime, used: Measures
) -> None:
    """Add to the day of the project that owns a run's or deployment's row, within a transaction."""
    uid = row.project_uid
    if uid is None:
        query = select(projects.c.uid).where(
            projects.c.namespace == namespace, projects.c.name == row.project
        )
        uid = (await connection.execute(query)).scalar_one_or_none()
    if uid is None or used == Measures():
        return
    day = at.astimezone(UTC).date().isoformat()
    first = insert(connection, usage_days).values(
        namespace=namespace, project_uid=uid, day=day, **asdict(used)
    )
    await connection.execute(
        first.on_conflict_do_update(
            index_elements=["namespace", "project_uid", "day"],
            set_={name: usage_days.c[name] + value for name, value in asdict(used).items()},
        )
    )
