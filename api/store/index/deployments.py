"""Deployments as rows. Called by the projector, the routes of deployments and those that accept runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.store.database import Database
from api.store.page import Page
from crds import objects


@dataclass(frozen=True)
class DeploymentRow:
    """A Deployment, by its object name (`dep-…`).

    `status` is pending, building, active, failed or superseded, derived from the Project's activeDeployment
    in the same query, so that no reader sees none or two active. `activated_at` is None if it never was.
    """

    name: str
    uid: str
    ord: int
    project: str
    status: str
    message: str | None
    git_sha: str | None
    created_at: datetime
    activated_at: datetime | None
    built: bool
    preview: bool
    activation: int
    error: Mapping[str, Any] | None
    spec: Mapping[str, Any]
    conditions: tuple[Mapping[str, Any], ...]


class Deployments:
    """The table of deployments of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def get(self, name: str) -> DeploymentRow | None:
        """One deployment by object name, or None."""
        raise NotImplementedError

    async def page(
        self, project: str, offset: int, limit: int, status: str | None = None
    ) -> Page[DeploymentRow]:
        """A page of a project's deployments, newest first, of one status if given. Unknown project: empty."""
        raise NotImplementedError

    async def observe(self, deployment: objects.Deployment) -> None:
        """The row becomes what the object says, unless a newer version of it is known already."""
        raise NotImplementedError

    async def remove(self, name: str, uid: str) -> None:
        """The object is gone."""
        raise NotImplementedError

    async def wait(self, name: str, timeout: float) -> None:
        """Returns once this deployment or its project's activation changed, or after `timeout` seconds."""
        raise NotImplementedError
