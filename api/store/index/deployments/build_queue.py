"""The build queue: the position of a deployment, and the builds that wait and run. Computed, never stored.

Called by the routes of deployments and of the installation. The order is that of the controller
(`crds.queues.build_order`).
"""

from dataclasses import dataclass

from sqlalchemy import and_, case, func, or_, select

from api.store.index.deployments.deployments import VISIBLE, DeploymentRow, deployment_row
from api.store.sql.database import Database
from api.store.sql.schema import deployments
from crds import conditions
from crds.queues.build_order import QueuedBuild, fair_order

QUEUED = "Queued"
"""The reason of Ready while the deployment waits for a build slot."""

# The controller writes Ready as the first condition, and Built as the second.
_QUEUED = and_(deployments.c.phase == "pending", deployments.c.conditions[0]["reason"].as_string() == QUEUED)
# Not `built`, which a smoke run delays.
_HAS_IMAGE = func.coalesce(deployments.c.conditions[1]["status"].as_string(), "") == "True"
_BUILDING = and_(deployments.c.phase == "building", ~_HAS_IMAGE)


@dataclass(frozen=True)
class CurrentBuilds:
    """The builds of all projects that wait and run now; `rows` are the first of them."""

    waiting: int
    running: int
    rows: tuple[DeploymentRow, ...]


class BuildQueue:
    """The builds of all projects of an installation; each namespace of a team has slots of its own."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def position(self, row: DeploymentRow) -> int | None:
        """Return a deployment's position in the queue of its team, from 1; None if it is not in the queue.

        Computed on each read: stored, each step of the queue would write to all its rows.
        """
        if row.status != "pending" or _ready_reason(row) != QUEUED:
            return None
        here = and_(
            deployments.c.namespace == self._namespace,
            deployments.c.object_namespace.is_not_distinct_from(row.object_namespace),
        )
        waiting = select(deployments.c.created_at, deployments.c.name, deployments.c.project).where(
            here, _QUEUED
        )
        running = select(deployments.c.project, func.count()).where(here, _BUILDING)
        ended_at = deployments.c.conditions[1]["lastTransitionTime"].as_string()
        ended = select(deployments.c.project, func.max(ended_at)).where(
            here,
            deployments.c.building_at.is_not(None),
            or_(_HAS_IMAGE, deployments.c.phase == "failed"),
            deployments.c.project.in_(select(deployments.c.project).where(here, _QUEUED)),
        )
        by_project = deployments.c.project
        async with self._database.read() as connection:
            builds = [QueuedBuild(*found) for found in await connection.execute(waiting)]
            running_rows = (await connection.execute(running.group_by(by_project))).all()
            ended_rows = (await connection.execute(ended.group_by(by_project))).all()
        counts = {row[0]: int(row[1]) for row in running_rows}
        ends = {row[0]: str(row[1] or "") for row in ended_rows}
        order = fair_order(builds, counts, ends)
        return next((place for place, each in enumerate(order, 1) if each.name == row.name), None)

    async def first(self, limit: int) -> CurrentBuilds:
        """Return how many builds wait and run in all projects, and the first of them, running ones first."""
        here = {"namespace": self._namespace}
        counted = select(
            func.coalesce(func.sum(case((_QUEUED, 1), else_=0)), 0),
            func.coalesce(func.sum(case((_BUILDING, 1), else_=0)), 0),
        ).where(deployments.c.namespace == self._namespace, deployments.c.phase.in_(("pending", "building")))
        order = (case((_BUILDING, 0), else_=1), deployments.c.ord)
        found = VISIBLE.where(or_(_QUEUED, _BUILDING)).order_by(*order).limit(limit)
        async with self._database.read() as connection:
            waiting_count, running_count = (await connection.execute(counted)).one()
            rows = (await connection.execute(found, here)).all()
        return CurrentBuilds(
            int(waiting_count), int(running_count), tuple(deployment_row(row) for row in rows)
        )


def _ready_reason(row: DeploymentRow) -> str | None:
    """Return the reason of the condition Ready."""
    ready = conditions.find(row.conditions, conditions.READY)
    return str(ready.get("reason")) if ready else None
