"""Retention of runs: by settings of the installation, `limits` of a plan and `spec.retention` of a Project.

Called by `api.maintenance.maintenance_round` and `api.maintenance.prune_objects`. A round handles a bounded
number of projects; the next one continues there.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from typing import Literal

from api.config import ApiConfig
from api.store.index.deletion.expired_records import ProjectRetention
from api.store.store import Store
from crds import durations
from crds.installation_limits import InstallationLimits
from crds.limits import Plans

RUNS_PER_TRANSACTION = 50
"""Runs replaced by tombstones in one transaction."""
PROJECTS_PER_ROUND = 100
"""Projects checked in one round."""
WITHDRAWN_RUN_TTL = timedelta(days=1)
"""How long the row of a withdrawn run is kept."""
_LIMITS = {"runs": "retained_run_seconds", "records": "retained_record_seconds"}
"""The limit of each field of `spec.retention`."""


@dataclass(frozen=True)
class RetentionPolicy:
    """How long ended runs are kept, in seconds: their objects `run_ttl`, their records `record_ttl`.

    A Project may ask for other times: at most the limit of the installation, or the installation's own time
    if that is longer. Its plan may lower both.
    """

    record_ttl: float
    run_ttl: float = ApiConfig.run_ttl
    limits: InstallationLimits = field(default_factory=InstallationLimits)
    plans: Plans = field(default_factory=Plans)

    @property
    def plan_matters(self) -> bool:
        """Whether a plan lowers a time."""
        return any(name in plan.limits for plan in self.plans.by_name.values() for name in _LIMITS.values())

    def record_seconds(self, project: ProjectRetention | None) -> float:
        """Return how long the records of a project are kept; None: an unknown project."""
        return self._seconds(project, "records", self.record_ttl)

    def object_seconds(self, project: ProjectRetention | None) -> float:
        """Return how long the objects of a project's ended runs are kept; at most as long as the records."""
        return min(self._seconds(project, "runs", self.run_ttl), self.record_seconds(project))

    def _seconds(
        self, project: ProjectRetention | None, name: Literal["runs", "records"], default: float
    ) -> float:
        if project is None:
            return default
        value, limit = project.asked.get(name), _LIMITS[name]
        try:
            seconds = durations.seconds(value) if isinstance(value, str) else default
        except ValueError:
            seconds = default
        most: float = max(getattr(self.limits, limit), default)
        return min(seconds, most, self.plans.of(project.plan).limits.get(limit, inf))


class RecordRetention:
    """Round-robin retention over the projects that have records."""

    def __init__(self, store: Store, policy: RetentionPolicy) -> None:
        self._store = store
        self._policy = policy
        self._after: str | None = None

    async def run_once(self, now: datetime) -> int:
        """Replace expired records by tombstones and return the number of runs."""
        records = self._store.expired_records
        retentions = await records.retentions(self._policy.plan_matters)
        names = await records.projects(self._after, PROJECTS_PER_ROUND)
        removed = await records.delete_hidden_runs(now - WITHDRAWN_RUN_TTL, RUNS_PER_TRANSACTION, now)
        for name in names:
            before = now - timedelta(seconds=self._policy.record_seconds(retentions.get(name)))
            removed += await records.delete_expired_runs(name, before, RUNS_PER_TRANSACTION, now)
        self._after = names[-1] if len(names) == PROJECTS_PER_ROUND else None
        return removed
