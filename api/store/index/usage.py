"""Usage of projects by UTC day, its tokens also by model.

Written by `api.store.accounting`, read by the routes of usage.
A run and a build count on the day they ended. Each is accounted once: the mark on its row and the sum change
in one transaction.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, Table, bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.deployments.build_times import FINISHED_PHASES, EndedBuild
from api.store.index.notifications.outbox import ProjectEvent, record_event
from api.store.index.runs.runs import ENDED, RunRow
from api.store.index.trace_exports import BUILD, RUN, TraceExports
from api.store.sql.database import Database
from api.store.sql.schema import (
    WITHOUT_USAGE,
    artifacts,
    deployments,
    projects,
    runs,
    usage_days,
    usage_models,
)
from api.store.sql.upsert import insert
from api.store.token_counts import ModelTokens, TokenCounts, joined


@dataclass(frozen=True)
class Measures:
    """Amounts used: counts, milliseconds, bytes, tokens."""

    runs: int = 0
    run_ms: int = 0
    build_ms: int = 0
    artifact_bytes: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    models: ModelTokens = field(default_factory=dict, kw_only=True)
    """The part of the tokens whose model is known."""

    def __add__(self, other: "Measures") -> "Measures":
        sums = (getattr(self, name) + getattr(other, name) for name in AMOUNTS)
        return Measures(*sums, models=joined(self.models, other.models, most=None))


AMOUNTS = tuple(f.name for f in fields(Measures) if f.name != "models")
"""What is a number."""


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
        models={
            name: (prompt, completion) for name, (prompt, completion) in (row.model_tokens or {}).items()
        },
    )


class Usage:
    """The usage of one namespace."""

    def __init__(self, database: Database, namespace: str, traces: TraceExports) -> None:
        self._database = database
        self._namespace = namespace
        self._traces = traces

    async def days(self, project_uid: str, first: date, last: date) -> dict[date, Measures]:
        """Return the usage on each day of a range, without the days that have none."""
        columns = [usage_days.c[name] for name in AMOUNTS]
        within = self._within(usage_days, [project_uid], first, last)
        query = select(usage_days.c.day, *columns).where(*within)
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
            models = await self._models(connection, usage_models.c.day, [project_uid], first, last)
        return {
            date.fromisoformat(day): Measures(*values, models=models.get(day, {})) for day, *values in rows
        }

    async def totals(self, project_uids: Collection[str], first: date, last: date) -> dict[str, Measures]:
        """Return the usage of each of these projects in a range of days, without those that have none."""
        sums = [func.sum(usage_days.c[name]) for name in AMOUNTS]
        within = self._within(usage_days, project_uids, first, last)
        query = select(usage_days.c.project_uid, *sums).where(*within).group_by(usage_days.c.project_uid)
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
            models = await self._models(connection, usage_models.c.project_uid, project_uids, first, last)
        return {uid: Measures(*map(int, values), models=models.get(uid, {})) for uid, *values in rows}

    async def _models(
        self,
        connection: AsyncConnection,
        key: ColumnElement[str],
        project_uids: Collection[str],
        first: date,
        last: date,
    ) -> dict[str, dict[str, tuple[int, int]]]:
        """Return the tokens by model in a range of days, by a column of `usage_models`."""
        tokens = (func.sum(usage_models.c.prompt_tokens), func.sum(usage_models.c.completion_tokens))
        within = self._within(usage_models, project_uids, first, last)
        query = select(key, usage_models.c.model, *tokens).where(*within).group_by(key, usage_models.c.model)
        found = dict[str, dict[str, tuple[int, int]]]()
        for value, model, prompt, completion in await connection.execute(query):
            found.setdefault(value, {})[model] = (int(prompt), int(completion))
        return found

    def _within(
        self, table: Table, project_uids: Collection[str], first: date, last: date
    ) -> tuple[ColumnElement[bool], ...]:
        return (
            table.c.namespace == self._namespace,
            table.c.project_uid.in_(sorted(project_uids)),
            table.c.day.between(first.isoformat(), last.isoformat()),
        )

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

    async def account_run(self, name: str, counts: TokenCounts) -> None:
        """Add a run's usage to its row and its project's day, and record its end, unless it is accounted."""
        tokens = {"prompt_tokens": counts.prompt, "completion_tokens": counts.completion}
        more = {"model_tokens": counts.models or None, "artifact_bytes": self._artifact_bytes()}
        async with self._database.write() as connection:
            row = await self._mark(connection, runs, name, **tokens, **more)
            if row is None or row.hidden or row.completed_at is None:
                return
            used = Measures(
                runs=1,
                run_ms=row.duration_ms or 0,
                artifact_bytes=int(row.artifact_bytes),
                models=counts.models,
                **tokens,
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

    async def record_usage(self, tokens: Mapping[str, TokenCounts]) -> None:
        """Record the tokens, by name, of runs that are accounted already."""
        changed = (
            update(runs)
            .where(runs.c.namespace == self._namespace, runs.c.name == bindparam("of_name"), WITHOUT_USAGE)
            .values(
                prompt_tokens=bindparam("prompt"),
                completion_tokens=bindparam("completion"),
                model_tokens=bindparam("models"),
                artifact_bytes=self._artifact_bytes(),
            )
        )
        values = [
            {
                "of_name": name,
                "prompt": counts.prompt,
                "completion": counts.completion,
                "models": counts.models or None,
            }
            for name, counts in tokens.items()
        ]
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
    day = {"namespace": namespace, "project_uid": uid, "day": at.astimezone(UTC).date().isoformat()}
    amounts = {name: getattr(used, name) for name in AMOUNTS}
    first = insert(connection, usage_days).values(**day, **amounts)
    # Locks the day's row, also for the models below.
    await connection.execute(
        first.on_conflict_do_update(
            index_elements=list(day),
            set_={name: usage_days.c[name] + value for name, value in amounts.items()},
        )
    )
    if used.models:
        await _add_models(connection, day, used.models)


async def _add_models(connection: AsyncConnection, day: Mapping[str, str], models: ModelTokens) -> None:
    known = select(usage_models.c.model).where(*(usage_models.c[name] == key for name, key in day.items()))
    names = (await connection.execute(known)).scalars()
    sums = joined(dict.fromkeys(names, (0, 0)), models)
    rows = insert(connection, usage_models).values(
        [
            {**day, "model": name, "prompt_tokens": prompt, "completion_tokens": completion}
            for name, (prompt, completion) in sums.items()
            if prompt + completion
        ]
    )
    await connection.execute(
        rows.on_conflict_do_update(
            index_elements=[*day, "model"],
            set_={
                name: usage_models.c[name] + rows.excluded[name]
                for name in ("prompt_tokens", "completion_tokens")
            },
        )
    )
