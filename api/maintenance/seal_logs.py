"""Sealing of event logs: each log becomes one compressed blob. Called by `api.maintenance.maintenance_round`.

Every step can be repeated, so a crash leaves nothing unfinished. A log that cannot be sealed, or deleted
then, is retried later and does not block others.
"""

from datetime import datetime

import structlog

from api.store.errors import StoreUnavailable
from api.store.postponed_runs import PostponedRuns
from api.store.store import Store

log = structlog.get_logger()

BATCH_SIZE = 20


class LogSealer:
    """Seals event logs, oldest first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._postponed = PostponedRuns()

    async def run_once(self, now: datetime, ended_before: datetime, limit: int = BATCH_SIZE) -> int:
        """Seal logs of runs that ended before `ended_before` and delete the sealed journals.

        Return the number of logs handled. Raises StoreUnavailable if no log could be handled.
        """
        postponed = self._postponed.names(now)
        unsealed = await self._store.archives.unsealed(ended_before, limit, excluded=postponed)
        done, failure = 0, None
        for log_row in unsealed:
            try:
                await self._store.event_logs.seal(log_row.run, log_row.record_count)
                done += 1
            except (StoreUnavailable, ValueError) as error:
                log.error("log not sealed, will retry", run=log_row.run, error=str(error))
                failure = error
                self._postponed.add(log_row.run, now)
        for run in await self._store.archives.uncleared(limit, excluded=self._postponed.names(now)):
            try:
                while not await self._store.event_logs.clear(run):
                    pass
                await self._store.archives.mark_cleared(run)
                done += 1
            except StoreUnavailable as error:
                log.error("sealed log not deleted, will retry", run=run, error=str(error))
                failure = error
                self._postponed.add(run, now)
        if failure and not done:
            raise StoreUnavailable(f"no log can be sealed or deleted: {failure}") from failure
        return done
