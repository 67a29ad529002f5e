"""Ended Run objects go after their time, archive first. Called by `api.background`.

The row has ended and holds its terminal event before the object is deleted, and
the object is the one that was seen: uid and resourceVersion are preconditions.
"""

from datetime import UTC, datetime, timedelta

from api.store.store import Store
from crds import errors
from crds.kinds import RUN
from crds.kube import Kube
from crds.objects import Run

BATCH = 200


async def prune(store: Store, kube: Kube, now: datetime, ttl: float) -> int:
    """Deletes the objects of runs that ended more than `ttl` seconds before `now`; gives how many."""
    deleted = 0
    for name, uid, version in await store.runs.prunable(now - timedelta(seconds=ttl), BATCH):
        try:
            if await kube.delete(RUN, name, uid=uid, resource_version=str(version)):
                deleted += 1
        except errors.Conflict:
            # It changed since: take notice, the next look tries again.
            found = await kube.get(RUN, name)
            if found is not None and found["metadata"]["uid"] == uid:
                await store.record.observe(Run(found), datetime.now(UTC))
                continue
        await store.record.vanish(name, uid, datetime.now(UTC))
    return deleted
