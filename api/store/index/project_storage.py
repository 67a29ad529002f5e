"""Stored bytes of projects: event logs, artifacts, uploads. Called by the calls that store bytes.

The sums are measured at most every half minute per project; what this process stores meanwhile is added.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlalchemy import Select, Table, func, select

from api.store.errors import StoreUnavailable
from api.store.shared_tasks import SharedTasks
from api.store.sql.database import Database
from api.store.sql.schema import archives, artifacts, projects, runs, uploads
from crds.objects import DEFAULT_PLAN

MEASURE_SECONDS = 30.0
MAX_CACHED_PROJECTS = 10_000
MAX_CACHED_RUNS = 10_000


@dataclass(frozen=True)
class StoredBytes:
    """Bytes of a project by kind; `events` are logs, sealed or not."""

    events: int = 0
    artifacts: int = 0
    uploads: int = 0

    @property
    def total(self) -> int:
        """The sum."""
        return self.events + self.artifacts + self.uploads


class ProjectStorage:
    """The stored bytes of the projects of one namespace."""

    def __init__(
        self, database: Database, namespace: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._namespace = namespace
        self._clock = clock
        self._measured: OrderedDict[str, tuple[float, str, StoredBytes]] = OrderedDict()
        self._measuring: SharedTasks[tuple[str, StoredBytes]] = SharedTasks()
        self._open_logs: dict[str, dict[str, int]] = {}
        self._projects: OrderedDict[str, str] = OrderedDict()

    async def of(self, project: str) -> tuple[str, StoredBytes]:
        """Return the plan and the stored bytes of a project.

        If a measurement fails, the last one stays. Raises StoreUnavailable if there was none.
        """
        measured_at, plan, stored = self._measured.get(project, (float("-inf"), "", StoredBytes()))
        now = self._clock()
        if now - measured_at >= MEASURE_SECONDS:
            if plan:
                # Others use the last sums meanwhile.
                self._measured[project] = (now, plan, stored)
            try:
                plan, stored = await self._measuring.run(project, lambda: self._refresh(project, now))
            except StoreUnavailable:
                if not plan:
                    raise
        return plan, replace(stored, events=stored.events + sum(self._open_logs.get(project, {}).values()))

    def add(self, project: str, artifact_bytes: int = 0, upload_bytes: int = 0) -> None:
        """Add what was stored since the last measurement."""
        if project in self._measured:
            measured_at, plan, stored = self._measured[project]
            self._measured[project] = (
                measured_at,
                plan,
                replace(
                    stored,
                    artifacts=stored.artifacts + artifact_bytes,
                    uploads=stored.uploads + upload_bytes,
                ),
            )

    def record_log(self, project: str, run: str, size: int) -> None:
        """Record the present bytes of a log that is not sealed, if the project is measured regularly."""
        measured_at = self._measured[project][0] if project in self._measured else float("-inf")
        if self._clock() - measured_at < 2 * MEASURE_SECONDS:
            self._open_logs.setdefault(project, {})[run] = size
        else:
            self._open_logs.pop(project, None)

    async def project_of(self, run: str) -> str | None:
        """Return the project of a run, which never changes. Raises StoreUnavailable."""
        project = self._projects.get(run)
        if project is None:
            query = select(runs.c.project).where(runs.c.namespace == self._namespace, runs.c.name == run)
            async with self._database.read() as connection:
                project = (await connection.execute(query)).scalar_one_or_none()
            if project is not None:
                self._projects[run] = project
                if len(self._projects) > MAX_CACHED_RUNS:
                    self._projects.popitem(last=False)
        return project

    async def _refresh(self, project: str, now: float) -> tuple[str, StoredBytes]:
        plan, stored = await self._measure(project)
        self._measured[project] = (now, plan, stored)
        self._measured.move_to_end(project)
        if len(self._measured) > MAX_CACHED_PROJECTS:
            dropped, _ = self._measured.popitem(last=False)
            self._open_logs.pop(dropped, None)
        return plan, stored

    async def _measure(self, project: str) -> tuple[str, StoredBytes]:
        open_logs = self._open_logs.get(project, {})
        unsealed = select(runs.c.name).where(
            runs.c.namespace == self._namespace, runs.c.name.in_(list(open_logs)), runs.c.sealed.is_(False)
        )
        spec_query = select(projects.c.spec).where(
            projects.c.namespace == self._namespace, projects.c.name == project
        )
        stored_uploads = select(func.coalesce(func.sum(uploads.c.size), 0)).where(
            uploads.c.namespace == self._namespace,
            uploads.c.project == project,
            uploads.c.stored_at.is_not(None),
        )
        async with self._database.read() as connection:
            sums = [
                int((await connection.execute(query)).scalar_one())
                for query in (
                    self._of_runs(project, archives),
                    self._of_runs(project, artifacts),
                    stored_uploads,
                )
            ]
            spec = (await connection.execute(spec_query)).scalar_one_or_none()
            kept = set((await connection.execute(unsealed)).scalars()) if open_logs else set()
        self._open_logs[project] = {run: size for run, size in open_logs.items() if run in kept}
        return str((spec or {}).get("plan") or DEFAULT_PLAN), StoredBytes(*sums)

    def _of_runs(self, project: str, table: Table) -> Select[tuple[int]]:
        # A join would make SQLite read the rows of all projects.
        names = select(runs.c.name).where(runs.c.namespace == self._namespace, runs.c.project == project)
        return select(func.coalesce(func.sum(table.c.size), 0)).where(
            table.c.namespace == self._namespace, table.c.run.in_(names)
        )
