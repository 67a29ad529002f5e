"""How long records are kept: `spec.retention.records` of their Project, or the installation's time.

Called by `api.maintenance.loops`. A round does a bounded part and goes on behind it with the next one.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from api.store.store import Store
from crds import durations

BATCH = 50
"""Runs buried in one transaction."""
PROJECTS = 100
"""Projects looked at in one round."""
TAKEN_BACK = timedelta(days=1)
"""How long a run that was taken back is remembered."""


class Retainer:
    """Goes round and round over the projects that have records."""

    def __init__(self, store: Store, record_ttl: float) -> None:
        self._store = store
        self._ttl = record_ttl
        self._after: str | None = None

    async def round(self, now: datetime) -> int:
        """Buries what is kept too long; gives how many runs."""
        records = self._store.records
        own = await records.retentions()
        names = await records.projects(self._after, PROJECTS)
        done = await records.bury_hidden(now - TAKEN_BACK, BATCH, now)
        for name in names:
            before = now - timedelta(seconds=seconds(own.get(name), "records", self._ttl))
            done += await records.bury_expired(name, before, BATCH, now)
        self._after = names[-1] if len(names) == PROJECTS else None
        return done


def seconds(retention: Mapping[str, Any] | None, field: str, default: float) -> float:
    """What a Project's retention says of a field, in seconds; the default where it says nothing of use."""
    asked = (retention or {}).get(field)
    try:
        return durations.seconds(asked) if isinstance(asked, str) else default
    except ValueError:
        return default


def object_seconds(retention: Mapping[str, Any] | None, run_ttl: float, record_ttl: float) -> float:
    """How long an ended Run object stays: never longer than its record."""
    return min(seconds(retention, "runs", run_ttl), seconds(retention, "records", record_ttl))
