"""Deletion of ended Run objects after their TTL. Called by `api.maintenance.loops`.

An object is deleted only after its row has ended and holds its terminal event. uid and resourceVersion are
preconditions of the delete.
"""

from datetime import UTC, datetime, timedelta

from api.maintenance.retention import object_seconds
from api.store.store import Store
from crds.kinds import RUN
from crds.objects import Run
from kube import errors
from kube.client import KubeClient

BATCH_SIZE = 200


async def prune_objects(
    store: Store, kube: KubeClient, now: datetime, run_ttl: float, record_ttl: float
) -> int:
    """Delete the objects of runs whose TTL expired before `now` and return their number.

    The TTL in seconds is `spec.retention.runs` of the Project, or `run_ttl`; at most the TTL of the record.
    """
    retentions = await store.expired_records.retentions()
    ended_before = now - timedelta(seconds=min(run_ttl, record_ttl))
    expired = list(await store.runs.prunable(ended_before, BATCH_SIZE, excluded_projects=retentions))
    for project, retention in retentions.items():
        seconds = object_seconds(retention, run_ttl, record_ttl, store.limits)
        ended_before = now - timedelta(seconds=seconds)
        expired += await store.runs.prunable(ended_before, BATCH_SIZE, project=project)
    return await _delete(store, kube, expired)


async def _delete(store: Store, kube: KubeClient, expired: list[tuple[str, str, int, str | None]]) -> int:
    deleted = 0
    for name, uid, version, namespace in expired:
        try:
            if await kube.at(namespace).delete(RUN, name, uid=uid, resource_version=str(version)):
                deleted += 1
        except errors.KubeConflict:
            # The object changed: record it; the next round tries again.
            manifest = await kube.at(namespace).get(RUN, name)
            if manifest is not None and manifest["metadata"]["uid"] == uid:
                await store.run_writer.observe(Run(manifest), datetime.now(UTC))
                continue
        await store.run_writer.mark_deleted(name, uid, datetime.now(UTC))
    return deleted
