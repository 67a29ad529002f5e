"""Logs of runs that ended some minutes ago become one compressed blob each. Called by `api.maintenance.round`.

Each step may be repeated: what a crash leaves half done is found again. A log that cannot be sealed holds up
no other: it is tried again later.
"""

from datetime import datetime, timedelta

import structlog

from api.store.errors import StoreUnavailable
from api.store.store import Store

log = structlog.get_logger()

BATCH = 20
LATER = timedelta(minutes=10)
MOST = 200
"""Logs remembered as failed; with more than these it is the store that fails."""


class Sealer:
    """Seals logs, oldest first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._failed: dict[str, datetime] = {}

    async def round(self, now: datetime, ended_before: datetime, limit: int = BATCH) -> int:
        """Seals logs of runs that ended before, and deletes what was sealed; gives how much was done.

        Raises StoreUnavailable where nothing could be done.
        """
        self._failed = {run: due for run, due in self._failed.items() if due > now}
        found = await self._store.archives.unsealed(ended_before, limit, but=self._failed)
        done, trouble = 0, None
        for one in found:
            try:
                await self._store.eventlogs.seal(one.run, one.said)
                done += 1
            except (StoreUnavailable, ValueError) as error:
                log.error("a log cannot be sealed; it is tried again", run=one.run, error=str(error))
                trouble = error
                if len(self._failed) < MOST:
                    self._failed[one.run] = now + LATER
        for run in await self._store.archives.uncleared(limit):
            while not await self._store.eventlogs.clear(run):
                pass
            await self._store.archives.cleared(run)
            done += 1
        if trouble and not done:
            raise StoreUnavailable(f"no log can be sealed: {trouble}") from trouble
        return done
