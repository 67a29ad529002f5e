"""Logs of runs that ended some minutes ago become one compressed blob each. Called by `api.background`.

Each step may be repeated: what a crash leaves half done is found again.
"""

from datetime import datetime

from api.store.store import Store

BATCH = 20


async def seal_round(store: Store, ended_before: datetime, limit: int = BATCH) -> int:
    """Seals logs of runs that ended before, and deletes what was sealed; gives how much there was to do."""
    found = await store.archives.unsealed(ended_before, limit)
    for one in found:
        await store.eventlogs.seal(one.run, one.said)
    sealed = await store.archives.uncleared(limit)
    for run in sealed:
        while not await store.eventlogs.clear(run):
            pass
        await store.archives.cleared(run)
    return len(found) + len(sealed)
