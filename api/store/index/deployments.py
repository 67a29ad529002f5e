"""Table of deployments. Called by the projector, the routes of deployments and run creation."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, and_, bindparam, case, func, or_, select, update

from api.store.index.deletion.delete_deployment import delete_deployment
from api.store.index.deletion.delete_project import is_removed
from api.store.index.object_versions import read_versions
from api.store.page import RowPage
from api.store.sql.columns import moment
from api.store.sql.database import Database, next_ord
from api.store.sql.notifier import Notifier
from api.store.sql.schema import deployments, projects
from crds import conditions, objects
from crds.kinds import PROJECT
from crds.queues.build_order import QueuedBuild, fair_order
from crds.reasons import STATUS_OF_PHASE, BuildReason
from crds.teams.namespaces import place_of
from crds.times import parse_time

QUEUED = "Queued"
"""The reason of Ready while the deployment waits for a build slot."""


@dataclass(frozen=True)
class DeploymentRow:
    """A Deployment, by its object name (`dep-…`).

    `status` is pending, building, active, failed or superseded, derived from the Project's activeDeployment
    in the same query: readers always see exactly one active one. `activated_at` is None if it never was.
    """

    name: str
    uid: str
    ord: int
    project: str
    status: str
    created_at: datetime
    created_by: str | None
    activated_at: datetime | None
    built: bool
    preview: bool
    activation: int
    error: Mapping[str, Any] | None
    spec: Mapping[str, Any]
    plan: Mapping[str, Any]
    conditions: tuple[Mapping[str, Any], ...]
    stages: tuple[Mapping[str, Any], ...] = ()
    budget: Mapping[str, Any] | None = None
    """The budget of its project."""
    object_namespace: str | None = None
    """The namespace of the object; None for the installation's own."""

    @property
    def message(self) -> str | None:
        """The commit's subject, or the message it was created with."""
        return self.spec.get("message")

    @property
    def cancel(self) -> bool:
        """Whether its cancellation was requested."""
        return bool(self.spec.get("cancel"))

    @property
    def ended(self) -> bool:
        """Whether its build has ended."""
        return self.built or self.status == "failed"

    @property
    def canceled(self) -> bool:
        """Whether its build was canceled."""
        return self.status == "failed" and (self.error or {}).get("reason") == BuildReason.CANCELED

    @property
    def git_sha(self) -> str | None:
        """The commit's id."""
        return self.spec.get("gitSha")


@dataclass(frozen=True)
class BuildQueue:
    """The builds of all projects that wait and run now; `rows` are the first of them."""

    waiting: int
    running: int
    rows: tuple[DeploymentRow, ...]


_ACTIVE = projects.c.active == deployments.c.name
# The two objects are watched separately: an activation that the Project's row does not include yet is shown
# as the state before it, not as superseded.
_ACTIVATION_PENDING = and_(
    projects.c.uid.is_not(None),
    deployments.c.activation == 0,
    deployments.c.activated_at.is_not(None),
    or_(projects.c.activated_at.is_(None), projects.c.activated_at < deployments.c.activated_at),
)
_STATUS = case(
    (_ACTIVE, "active"),
    (and_(deployments.c.phase == "active", _ACTIVATION_PENDING), "building"),
    (deployments.c.phase == "active", "superseded"),
    else_=deployments.c.phase,
)
_DERIVED = {
    "status": _STATUS,
    "activated_at": case(
        (_ACTIVE, func.coalesce(projects.c.activated_at, deployments.c.activated_at)),
        else_=deployments.c.activated_at,
    ),
    "budget": projects.c.spec["budget"],
}
_COLUMNS = [
    _DERIVED[field.name].label(field.name) if field.name in _DERIVED else deployments.c[field.name]
    for field in fields(DeploymentRow)
]

# Deployments of an earlier project of the same name are hidden, even before they are garbage collected, and
# those that name a project of another namespace.
_VISIBLE = (
    select(*_COLUMNS)
    .select_from(
        deployments.outerjoin(
            projects,
            and_(projects.c.namespace == deployments.c.namespace, projects.c.name == deployments.c.project),
        )
    )
    .where(
        deployments.c.namespace == bindparam("namespace"),
        or_(
            projects.c.uid.is_(None),
            deployments.c.project_uid.is_(None),
            deployments.c.project_uid == projects.c.uid,
        ),
        or_(
            projects.c.uid.is_(None),
            deployments.c.object_namespace.is_not_distinct_from(projects.c.object_namespace),
        ),
    )
)
_BY_NAME = _VISIBLE.where(deployments.c.name == bindparam("name"))
# The controller writes Ready as the first condition, and Built as the second.
_QUEUED = and_(deployments.c.phase == "pending", deployments.c.conditions[0]["reason"].as_string() == QUEUED)
# Not `built`, which a smoke run delays.
_HAS_IMAGE = func.coalesce(deployments.c.conditions[1]["status"].as_string(), "") == "True"
_BUILDING = and_(deployments.c.phase == "building", ~_HAS_IMAGE)


def _row(row: Row[Any]) -> DeploymentRow:
    values = dict(row._mapping)
    lists = {name: tuple(values[name] or ()) for name in ("conditions", "stages")}
    return DeploymentRow(**{**values, **lists})


class Deployments:
    """The deployments of an installation. `notifier` fires at every change."""

    def __init__(self, database: Database, namespace: str, notifier: Notifier) -> None:
        self._database = database
        self._namespace = namespace
        self._notifier = notifier

    async def get(self, name: str) -> DeploymentRow | None:
        """Return one deployment by object name, or None."""
        here = {"namespace": self._namespace, "name": name}
        async with self._database.brief_read() as connection:
            row = (await connection.execute(_BY_NAME, here)).one_or_none()
        return _row(row) if row else None

    async def page(
        self, project: str, offset: int, limit: int, status: str | None = None
    ) -> RowPage[DeploymentRow]:
        """Return a page of a project's deployments, newest first, optionally of one status. May be empty."""
        query = _VISIBLE.where(deployments.c.project == project)
        if status is not None:
            query = query.where(_STATUS.in_([status]))
        async with self._database.brief_read() as connection:
            here = {"namespace": self._namespace}
            count = select(func.count()).select_from(query.subquery())
            total = int((await connection.execute(count, here)).scalar_one())
            query = query.order_by(deployments.c.ord.desc()).offset(offset).limit(limit)
            rows = (await connection.execute(query, here)).all()
        return RowPage(tuple(_row(row) for row in rows), total)

    async def queue_position(self, row: DeploymentRow) -> int | None:
        """Return a deployment's position in the build queue, from 1; None if it is not in the queue.

        Computed on each read: stored, each step of the queue would write to all its rows.
        """
        if row.status != "pending" or _ready_reason(row) != QUEUED:
            return None
        here = deployments.c.namespace == self._namespace
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

    async def build_queue(self, limit: int) -> BuildQueue:
        """Return how many builds wait and run in all projects, and the first of them, running ones first."""
        here = {"namespace": self._namespace}
        counted = select(
            func.coalesce(func.sum(case((_QUEUED, 1), else_=0)), 0),
            func.coalesce(func.sum(case((_BUILDING, 1), else_=0)), 0),
        ).where(deployments.c.namespace == self._namespace, deployments.c.phase.in_(("pending", "building")))
        order = (case((_BUILDING, 0), else_=1), deployments.c.ord)
        found = _VISIBLE.where(or_(_QUEUED, _BUILDING)).order_by(*order).limit(limit)
        async with self._database.read() as connection:
            waiting_count, running_count = (await connection.execute(counted)).one()
            rows = (await connection.execute(found, here)).all()
        return BuildQueue(int(waiting_count), int(running_count), tuple(_row(row) for row in rows))

    async def resource_versions(self, place: str | None = None) -> dict[str, tuple[str, int]]:
        """Return uid and last seen resourceVersion, by name, of the rows of one namespace."""
        return await read_versions(self._database, self._namespace, deployments, place)

    async def observe(self, deployment: objects.Deployment) -> None:
        """Update the row from the object, unless the row is newer; delete the row of an erased object.

        Of two namespaces with a deployment of this name, the first that was seen is stored.
        """
        if deployment.erased:
            await self.remove(deployment.name, deployment.uid)
            return
        version = int(deployment.resource_version or 0)
        place = place_of(deployment.namespace, self._namespace)
        owner = deployment.owner_uid(PROJECT)
        values = _values(deployment, version, owner)
        async with self._database.write() as connection:
            here = and_(deployments.c.namespace == self._namespace, deployments.c.name == deployment.name)
            stored = select(deployments.c.uid, deployments.c.version, deployments.c.object_namespace)
            row = (await connection.execute(stored.where(here))).one_or_none()
            if row and row.object_namespace != place:
                return
            if (row and row.version >= version) or await is_removed(connection, self._namespace, owner):
                return
            if row and row.uid != deployment.uid:
                await delete_deployment(
                    connection, self._namespace, deployment.name, row.uid, datetime.now(UTC)
                )
                row = None
            if values["phase"] == "building":
                # The first time it is seen building; time in the queue is not accounted.
                started = moment(datetime.now(UTC))
                values["building_at"] = func.coalesce(deployments.c.building_at, started) if row else started
            if row:
                await connection.execute(update(deployments).where(here).values(**values))
            else:
                await connection.execute(
                    deployments.insert().values(
                        namespace=self._namespace,
                        name=deployment.name,
                        ord=await next_ord(connection, self._namespace),
                        object_namespace=place,
                        **values,
                    )
                )
        self._notifier.notify("deployments")

    async def remove(self, name: str, uid: str) -> None:
        """Delete the row of a deleted object, and its build log afterwards."""
        async with self._database.write() as connection:
            await delete_deployment(connection, self._namespace, name, uid, datetime.now(UTC))
        self._notifier.notify("deployments")

    def mark(self) -> int:
        """Return the current position; take it before reading and pass it to `wait`."""
        return self._notifier.mark

    async def wait(self, mark: int, timeout: float) -> None:
        """Return as soon as a deployment or project has changed since `mark`, or after `timeout` seconds."""
        await self._notifier.wait("deployments", mark, timeout)


def _ready_reason(row: DeploymentRow) -> str | None:
    """Return the reason of the condition Ready."""
    ready = conditions.find(row.conditions, conditions.READY)
    return str(ready.get("reason")) if ready else None


def _values(deployment: objects.Deployment, version: int, owner: str | None) -> dict[str, Any]:
    activated = deployment.status.get("activatedAt")
    values: dict[str, Any] = {
        "uid": deployment.uid,
        "version": version,
        "project": deployment.project,
        "phase": STATUS_OF_PHASE.get(deployment.phase, "pending"),
        "built": deployment.built,
        "preview": deployment.preview,
        "activation": deployment.activation,
        "created_at": deployment.created,
        "created_by": deployment.created_by,
        "error": None if deployment.error is None else dict(deployment.error),
        "spec": dict(deployment.spec),
        "plan": dict(deployment.plan),
        "conditions": list(deployment.conditions),
        "stages": deployment.status.get("stages"),
    }
    if owner is not None:
        values["project_uid"] = owner
    if activated:
        values["activated_at"] = parse_time(activated)
    return values
