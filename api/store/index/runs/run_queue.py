"""The run queue of a project: positions, and how many slots of its plan are used.

A claimed run uses a slot until it has reported its result or ended. Called by the claims, in the granting
transaction, and by the route that shows a run.
"""

from typing import Any

from sqlalchemy import ColumnElement, bindparam, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.runs.runs import RunDetail
from api.store.sql.database import Database
from api.store.sql.schema import claims, projects, runs
from crds.limits import Plans
from crds.objects import DEFAULT_PLAN

REASONS_OUTSIDE_QUEUE = ("WaitingForDeployment", "ImageNotVerified", "PodNameTaken")
"""Reasons to wait of a pending run that takes no slot meanwhile."""

_SPEC = select(projects.c.spec).where(
    projects.c.namespace == bindparam("namespace"), projects.c.name == bindparam("project")
)
_USED_SLOTS = (
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
_SLOTS = select(_SPEC.scalar_subquery().label("spec"), _USED_SLOTS.scalar_subquery().label("used"))
"""The project's spec (None if it is unknown) and its used slots."""


class RunQueue:
    """The run queues of one namespace, computed from rows; nothing of them is stored."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def position(self, run: RunDetail, plans: Plans) -> int | None:
        """Return how many slots must become free before this run gets one; None if it has or needs none.

        First in, first out: of the unclaimed runs, the first ones get the free slots and are starting. Runs
        that wait for something else or are being canceled block no other run.
        """
        if (
            run.status != "pending"
            or run.cancel
            or (run.waiting or {}).get("reason") in REASONS_OUTSIDE_QUEUE
        ):
            return None
        why = runs.c.waiting["reason"].as_string()
        before = (
            select(func.count())
            .select_from(runs)
            .where(
                *_pending(self._namespace, run.project),
                runs.c.ord < run.ord,
                runs.c.cancel.is_(False),
                or_(why.is_(None), why.not_in(REASONS_OUTSIDE_QUEUE)),
            )
        )
        async with self._database.read() as connection:
            ahead = int((await connection.execute(before)).scalar_one())
            free = await free_slots(connection, self._namespace, run.project, plans)
        return ahead - free + 1 if ahead >= free else None


async def free_slots(connection: AsyncConnection, namespace: str, project: str, plans: Plans) -> int:
    """Return the free slots of a project, as of this transaction."""
    here = {"namespace": namespace, "project": project}
    row = (await connection.execute(_SLOTS, here)).one()
    plan = (row.spec or {}).get("plan") or DEFAULT_PLAN
    return max(0, plans.of(str(plan)).concurrent_runs - int(row.used))


def _pending(namespace: str, project: str) -> tuple[ColumnElement[Any], ...]:
    return (*_visible(namespace, project), runs.c.status == "pending")


def _visible(namespace: str, project: str) -> tuple[ColumnElement[Any], ...]:
    return (runs.c.namespace == namespace, runs.c.hidden.is_(False), runs.c.project == project)
