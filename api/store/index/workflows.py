"""CI workflows that projects trust, from the projects' rows. Called by `api.auth.oidc`."""

from typing import Any

from sqlalchemy import select

from api.store.sql.database import Database
from api.store.sql.notifier import Notifier
from api.store.sql.schema import projects


class Workflows:
    """`spec.oidc` of the projects of one namespace. `notifier` fires when a project changes."""

    def __init__(self, database: Database, namespace: str, notifier: Notifier) -> None:
        self._database = database
        self._namespace = namespace
        self._notifier = notifier

    async def all(self) -> list[tuple[str, Any]]:
        """Return name and `oidc` of every project that has one. Raises StoreUnavailable."""
        oidc_column = projects.c.spec["oidc"]
        query = (
            select(projects.c.name, oidc_column)
            .where(projects.c.namespace == self._namespace, oidc_column.as_string().is_not(None))
            .order_by(projects.c.name)
        )
        async with self._database.read() as connection:
            return [(name, oidc) for name, oidc in await connection.execute(query)]

    def mark(self) -> int:
        """Return the current position; take it before reading and pass it to `changed`."""
        return self._notifier.mark

    def changed(self, mark: int) -> bool:
        """Return whether a project or deployment has changed since `mark`, as far as this replica knows."""
        return self._notifier.changed_since("deployments", mark)
