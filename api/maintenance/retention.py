"""Retention of records: `spec.retention.records` of their Project, or the default of the installation.

Called by `api.maintenance.maintenance_round`. A round handles a bounded number of projects; the next one
continues there.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from api.store.store import Store
from crds import durations
from crds.installation_limits import InstallationLimits

RUNS_PER_TRANSACTION = 50
"""Runs replaced by tombstones in one transaction."""
PROJECTS_PER_ROUND = 100
"""Projects checked in one round."""
WITHDRAWN_RUN_TTL = timedelta(days=1)
"""How long the row of a withdrawn run is kept."""


class RecordRetention:
    """Round-robin retention over the projects that have records."""

    def __init__(self, store: Store, record_ttl: float) -> None:
        self._store = store
        self._ttl = record_ttl
        self._after: str | None = None

    async def run_once(self, now: datetime) -> int:
        """Replace expired records by tombstones and return the number of runs."""
        records = self._store.expired_records
        retentions = await records.retentions()
        names = await records.projects(self._after, PROJECTS_PER_ROUND)
        removed = await records.delete_hidden_runs(now - WITHDRAWN_RUN_TTL, RUNS_PER_TRANSACTION, now)
        for name in names:
            seconds = retention_seconds(retentions.get(name), "records", self._ttl, self._store.limits)
            before = now - timedelta(seconds=seconds)
            removed += await records.delete_expired_runs(name, before, RUNS_PER_TRANSACTION, now)
        self._after = names[-1] if len(names) == PROJECTS_PER_ROUND else None
        return removed


def retention_seconds(
    retention: Mapping[str, Any] | None, field: str, default: float, limits: InstallationLimits
) -> float:
    """Return a field of a Project's retention in seconds; the default if it is absent or invalid.

    A Project gets at most the installation's limit, or the default if that is longer.
    """
    value = (retention or {}).get(field)
    most = limits.retained_run_seconds if field == "runs" else limits.retained_record_seconds
    try:
        asked = durations.seconds(value) if isinstance(value, str) else default
    except ValueError:
        return default
    return min(asked, max(most, default))


def object_seconds(
    retention: Mapping[str, Any] | None, run_ttl: float, record_ttl: float, limits: InstallationLimits
) -> float:
    """Return the TTL of an ended Run object in seconds; at most that of its record."""
    return min(
        retention_seconds(retention, "runs", run_ttl, limits),
        retention_seconds(retention, "records", record_ttl, limits),
    )
