"""Projects as rows: they follow the objects. Called by the projector and the routes of projects."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.store.database import Database
from api.store.page import Page
from crds import objects


@dataclass(frozen=True)
class ProjectRow:
    """A Project. `active` is the active Deployment's object name; `spec`, `status` are the object's."""

    name: str
    uid: str
    ord: int
    created_at: datetime
    active: str | None
    activated_at: datetime | None
    spec: Mapping[str, Any]
    status: Mapping[str, Any]


class Projects:
    """The table of projects of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def get(self, name: str) -> ProjectRow | None:
        """One project, or None."""
        raise NotImplementedError

    async def page(self, offset: int, limit: int, names: frozenset[str] | None = None) -> Page[ProjectRow]:
        """A page, newest first; with `names`, of these only (a key bound to projects)."""
        raise NotImplementedError

    async def observe(self, project: objects.Project) -> None:
        """The row becomes what the object says, unless a newer version of it is known already.

        Call it with the apiserver's answer to a create or patch, so that the next reader sees it. An object
        of another uid under the same name first removes all that belonged to the old one.
        """
        raise NotImplementedError

    async def remove(self, name: str, uid: str, now: datetime) -> None:
        """The object is gone: the row goes with its deployments; its runs leave only tombstones."""
        raise NotImplementedError
