"""One maintenance round: garbage collection, retention, log sealing. Called by `api.maintenance.loops`.

The steps run in sequence, so two of them never work on the same run. Steps that free space come first, and a
failed step does not stop the others: a full disk must not block its own cleanup.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from api.maintenance.garbage import delete_expired_uploads, delete_garbage
from api.maintenance.retention import RecordRetention, RetentionPolicy
from api.maintenance.seal_logs import LogSealer
from api.store.errors import StoreUnavailable
from api.store.store import Store


class MaintenanceRound:
    """Maintenance of one store. `seal_after`: a setting of the installation, in seconds."""

    def __init__(self, store: Store, retention: RetentionPolicy, seal_after: float) -> None:
        self._store = store
        self._retention = RecordRetention(store, retention)
        self._sealer = LogSealer(store)
        self._seal_after = timedelta(seconds=seal_after)

    async def run_once(self, now: datetime) -> int:
        """Do a bounded part of the work and return how many items were handled. Raises StoreUnavailable."""
        done, failure = 0, None
        steps: tuple[Callable[[], Awaitable[int]], ...] = (
            lambda: delete_garbage(self._store),
            lambda: delete_expired_uploads(self._store, now),
            lambda: self._retention.run_once(now),
            lambda: self._prune_audit(now),
            lambda: self._sealer.run_once(now, now - self._seal_after),
        )
        for step in steps:
            try:
                done += await step()
            except StoreUnavailable as error:
                failure = failure or error
        if failure:
            raise failure
        return done

    async def _prune_audit(self, now: datetime) -> int:
        limits = self._store.limits
        before = now - timedelta(seconds=limits.audit_seconds)
        return await self._store.audit.prune(before, limits.audit_records, now)
