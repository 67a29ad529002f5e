"""The places that a project's plan gives its runs: how many are held, and who waits for one.

A claimed run holds a place until it has reported or ended. Called by the claims,
in the transaction that gives one, and by the route that shows a run.
"""

from typing import Any

from sqlalchemy import ColumnElement, bindparam, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.runs.runs import RunDetail
from api.store.sql.database import Database
from api.store.sql.schema import claims, projects, runs
from crds.limits import Plans

NO_COMPETITOR = ("WaitingForDeployment",)
"""What a pending run waits for before it stands in the queue."""

_SPEC = select(projects.c.spec).where(
    projects.c.namespace == bindparam("namespace"), projects.c.name == bindparam("project")
)
_HELD = (
    select(func.count())
    .select_from(runs)
    .join(claims, (claims.c.namespace == runs.c.namespace) & (claims.c.run == runs.c.name))
    .where(
        runs.c.namespace == bindparam("namespace"),
        runs.c.hidden.is_(False),
        runs.c.project == bindparam("project"),
        runs.c.status == "running",
        claims.c.result.is_(None),
    )
)


class Places:
    """The queues of one namespace, read from rows; nothing of it is stored."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def position(self, run: RunDetail, plans: Plans) -> int | None:
        """How many places must become free until this run gets one; None where it has one, or needs none.

        First in, first out: of the runs that are not claimed, the first have the free places and are
        being started; whoever waits for a build or is being canceled stands in nobody's way.
        """
        if run.status != "pending" or run.cancel or (run.waiting or {}).get("reason") in NO_COMPETITOR:
            return None
        why = runs.c.waiting["reason"].as_string()
        before = (
            select(func.count())
            .select_from(runs)
            .where(
                *_pending(self._namespace, run.project),
                runs.c.ord < run.ord,
                runs.c.cancel.is_(False),
                or_(why.is_(None), why.not_in(NO_COMPETITOR)),
            )
        )
        async with self._database.read() as connection:
            ahead = int((await connection.execute(before)).scalar_one())
            free = await free_places(connection, self._namespace, run.project, plans)
        return ahead - free + 1 if ahead >= free else None


async def free_places(connection: AsyncConnection, namespace: str, project: str, plans: Plans) -> int:
    """The places of a project that no claimed run holds, as of this transaction."""
    here = {"namespace": namespace, "project": project}
    plan = ((await connection.execute(_SPEC, here)).scalar_one_or_none() or {}).get("plan") or "free"
    taken = int((await connection.execute(_HELD, here)).scalar_one())
    return max(0, plans.of(str(plan)).concurrent_runs - taken)


def _pending(namespace: str, project: str) -> tuple[ColumnElement[Any], ...]:
    return (*_shown(namespace, project), runs.c.status == "pending")


def _shown(namespace: str, project: str) -> tuple[ColumnElement[Any], ...]:
    return (runs.c.namespace == namespace, runs.c.hidden.is_(False), runs.c.project == project)
