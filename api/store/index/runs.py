"""Runs as rows: every run ever. Called by accept, the projector and the routes of runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.store.database import Database
from api.store.page import Page


@dataclass(frozen=True)
class RunRow:
    """A run as lists show it, by its object name (`run-…`). `status` is lower-case, as /v1 has it."""

    name: str
    ord: int
    project: str
    deployment: str | None
    status: str
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    duration_ms: int | None

    @property
    def ended(self) -> bool:
        """Whether it has reached its end."""
        return self.status in ("succeeded", "failed", "canceled")


@dataclass(frozen=True)
class RunDetail(RunRow):
    """A run as a single object: with what it was given and what came of it."""

    uid: str | None
    input: Mapping[str, Any]
    entrypoint: str | None
    timeout: str | None
    cancel: bool
    output: Any
    error: Mapping[str, Any] | None
    waiting: Mapping[str, Any] | None
    """Why it is pending: the condition Admitted or Succeeded, `{reason, message}`."""


class Runs:
    """The table of runs of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def get(self, name: str) -> RunDetail | None:
        """One run by object name, or None."""
        raise NotImplementedError

    async def page(
        self,
        offset: int,
        limit: int,
        project: str | None = None,
        deployment: str | None = None,
        status: str | None = None,
        projects: frozenset[str] | None = None,
    ) -> Page[RunRow]:
        """A page, newest first. `deployment` is an object name; `projects` bounds what a key may see."""
        raise NotImplementedError
