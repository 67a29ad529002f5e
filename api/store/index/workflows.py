"""CI workflows that projects trust, and the ids of their repositories. Called by `api.auth.oidc`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select

from api.store.index.deletion.removed_projects import PROJECT_PRESENT
from api.store.sql.database import Database
from api.store.sql.notifier import Notifier
from api.store.sql.schema import projects, workflow_pins
from api.store.sql.upsert import insert


@dataclass(frozen=True)
class TrustedWorkflows:
    """`spec.oidc` of a project."""

    name: str
    uid: str
    oidc: Any


class Workflows:
    """The trusted workflows of one namespace. `notifier` fires when a project changes."""

    def __init__(self, database: Database, namespace: str, notifier: Notifier) -> None:
        self._database = database
        self._namespace = namespace
        self._notifier = notifier

    async def all(self) -> list[TrustedWorkflows]:
        """Return every project that trusts some. Raises StoreUnavailable."""
        oidc_column = projects.c.spec["oidc"]
        query = (
            select(projects.c.name, projects.c.uid, oidc_column)
            .where(
                projects.c.namespace == self._namespace,
                oidc_column.as_string().is_not(None),
                PROJECT_PRESENT,
            )
            .order_by(projects.c.name)
        )
        async with self._database.read() as connection:
            return [TrustedWorkflows(*row) for row in await connection.execute(query)]

    async def pins(self) -> dict[tuple[str, str], str]:
        """Return the pinned id of each project's uid and repository, in lower case."""
        query = select(workflow_pins.c.project_uid, workflow_pins.c.repository, workflow_pins.c.repository_id)
        async with self._database.read() as connection:
            rows = await connection.execute(query.where(workflow_pins.c.namespace == self._namespace))
            return {(row.project_uid, row.repository): row.repository_id for row in rows}

    async def pin(self, project_uid: str, repository: str, repository_id: str, now: datetime) -> str:
        """Pin the id unless one is pinned, and return the pinned one."""
        key = {"namespace": self._namespace, "project_uid": project_uid, "repository": repository}
        query = select(workflow_pins.c.repository_id).filter_by(**key)
        async with self._database.write() as connection:
            row = insert(connection, workflow_pins).values(**key, repository_id=repository_id, pinned_at=now)
            await connection.execute(row.on_conflict_do_nothing())
            return str((await connection.execute(query)).scalar_one())

    def mark(self) -> int:
        """Return the current position; take it before reading and pass it to `changed`."""
        return self._notifier.mark

    def changed(self, mark: int) -> bool:
        """Return whether a project or deployment has changed since `mark`, as far as this replica knows."""
        return self._notifier.changed_since("deployments", mark)
