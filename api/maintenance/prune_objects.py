"""Ended Run objects go after their time, archive first. Called by `api.maintenance.loops`.

The row has ended and holds its terminal event before the object is deleted, and
the object is the one that was seen: uid and resourceVersion are preconditions.
"""

from datetime import UTC, datetime, timedelta

from api.maintenance.retention import object_seconds
from api.store.store import Store
from crds.kinds import RUN
from crds.objects import Run
from kube import errors
from kube.client import Kube

BATCH = 200


async def prune(store: Store, kube: Kube, now: datetime, run_ttl: float, record_ttl: float) -> int:
    """Deletes the objects of runs that ended long enough before `now`; gives how many.

    How long, in seconds, is said by `spec.retention.runs` of the Project, or by `run_ttl`; never longer than
    the record is kept.
    """
    own = await store.records.retentions()
    ended = now - timedelta(seconds=min(run_ttl, record_ttl))
    doomed = list(await store.runs.prunable(ended, BATCH, but=own))
    for project, retention in own.items():
        ended = now - timedelta(seconds=object_seconds(retention, run_ttl, record_ttl))
        doomed += await store.runs.prunable(ended, BATCH, project=project)
    return await _delete(store, kube, doomed)


async def _delete(store: Store, kube: Kube, doomed: list[tuple[str, str, int]]) -> int:
    deleted = 0
    for name, uid, version in doomed:
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
