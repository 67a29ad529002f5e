"""Table of deployments. Called by the projector, the routes of deployments and run creation."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, Select, and_, bindparam, case, func, or_, select, update

from api.store.index.deletion.delete_deployment import delete_deployment
from api.store.index.deletion.removed_projects import PROJECT_PRESENT, is_removed
from api.store.index.object_versions import read_versions
from api.store.page import RowPage
from api.store.sql.columns import moment
from api.store.sql.database import Database, next_ord
from api.store.sql.notifier import Notifier
from api.store.sql.schema import deployments, projects
from crds import objects
from crds.kinds import PROJECT
from crds.reasons import STATUS_OF_PHASE, BuildReason
from crds.teams.namespaces import place_of
from crds.times import parse_time


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
VISIBLE = (
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
        PROJECT_PRESENT,
    )
)
_BY_NAME = VISIBLE.where(deployments.c.name == bindparam("name"))
_ACTIVE_OF = VISIBLE.where(_ACTIVE, deployments.c.project == bindparam("project"))


def deployment_row(row: Row[Any]) -> DeploymentRow:
    """Return a row of a selection of `VISIBLE`."""
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
        return await self._one(_BY_NAME, name=name)

    async def active_of(self, project: str) -> DeploymentRow | None:
        """Return the active deployment of a project, or None."""
        return await self._one(_ACTIVE_OF, project=project)

    async def _one(self, query: Select[Any], **values: str) -> DeploymentRow | None:
        here = {"namespace": self._namespace, **values}
        async with self._database.brief_read() as connection:
            row = (await connection.execute(query, here)).one_or_none()
        return deployment_row(row) if row else None

    async def page(
        self, project: str, offset: int, limit: int, status: str | None = None
    ) -> RowPage[DeploymentRow]:
        """Return a page of a project's deployments, newest first, optionally of one status. May be empty."""
        query = VISIBLE.where(deployments.c.project == project)
        if status is not None:
            query = query.where(_STATUS.in_([status]))
        async with self._database.brief_read() as connection:
            here = {"namespace": self._namespace}
            count = select(func.count()).select_from(query.subquery())
            total = int((await connection.execute(count, here)).scalar_one())
            query = query.order_by(deployments.c.ord.desc()).offset(offset).limit(limit)
            rows = (await connection.execute(query, here)).all()
        return RowPage(tuple(deployment_row(row) for row in rows), total)

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
        "spec": {**deployment.spec, **({"message": deployment.message} if deployment.message else {})},
        "plan": dict(deployment.plan),
        "conditions": list(deployment.conditions),
        "stages": deployment.status.get("stages"),
    }
    if owner is not None:
        values["project_uid"] = owner
    if activated:
        values["activated_at"] = parse_time(activated)
    return values
