"""The workflows that projects let in, read from the projects' rows. Called by `api.auth.oidc`."""

from typing import Any

from sqlalchemy import select

from api.store.sql.database import Database
from api.store.sql.notifier import Signals
from api.store.sql.schema import projects


class Workflows:
    """`spec.oidc` of the projects of one namespace. `signals` rings when a project changes."""

    def __init__(self, database: Database, namespace: str, signals: Signals) -> None:
        self._database = database
        self._namespace = namespace
        self._signals = signals

    async def all(self) -> list[tuple[str, Any]]:
        """Name and `oidc` of every project that has some. Raises StoreUnavailable."""
        found = projects.c.spec["oidc"]
        query = (
            select(projects.c.name, found)
            .where(projects.c.namespace == self._namespace, found.as_string().is_not(None))
            .order_by(projects.c.name)
        )
        async with self._database.read() as connection:
            return [(name, oidc) for name, oidc in await connection.execute(query)]

    def mark(self) -> int:
        """The present moment, to be taken before reading and given to `changed`."""
        return self._signals.mark

    def changed(self, mark: int) -> bool:
        """Whether any project or deployment has changed since `mark`, as far as this replica heard."""
        return self._signals.since("deployments", mark)
