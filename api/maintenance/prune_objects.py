"""Deletion of ended Run objects after their TTL. Called by `api.maintenance.loops`.

An object is deleted only after its row has ended and holds its terminal event, or if it has no row because
its name was executed before. uid and resourceVersion are preconditions of the delete.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from api.maintenance.retention import RetentionPolicy
from api.projection.refused_namespaces import RefusedNamespaces
from api.projection.stray_runs import StrayRuns
from api.store.index.runs.runs import Prunable
from api.store.store import Store
from crds.kinds import RUN
from crds.objects import Run
from kube import errors
from kube.client import KubeClient

BATCH_SIZE = 200


async def prune_objects(store: Store, kube: KubeClient, now: datetime, policy: RetentionPolicy) -> int:
    """Delete the objects of runs whose TTL expired before `now` and return their number."""
    retentions = await store.expired_records.retentions(policy.plan_matters)
    common = policy.object_seconds(None)
    other = {
        project: seconds
        for project, retention in retentions.items()
        if (seconds := policy.object_seconds(retention)) != common
    }
    ended_before = now - timedelta(seconds=common)
    refused = RefusedNamespaces()
    prunable = partial(store.runs.prunable, ended_before, BATCH_SIZE, excluded_projects=other)
    deleted = await _delete_batch(store, kube, prunable, refused)
    for project, seconds in other.items():
        ended_before = now - timedelta(seconds=seconds)
        prunable = partial(store.runs.prunable, ended_before, BATCH_SIZE, project=project)
        deleted += await _delete_batch(store, kube, prunable, refused)
    return deleted


async def _delete_batch(
    store: Store, kube: KubeClient, prunable: Callable[..., Awaitable[Prunable]], refused: RefusedNamespaces
) -> int:
    """Delete a batch, and another one as long as the apiserver refuses a call in one more namespace.

    A batch has no run of those: their oldest would fill it in every pass.
    """
    deleted, known = 0, -1
    while known < len(refused.names):
        known = len(refused.names)
        for name, uid, version, namespace in await prunable(excluded_namespaces=tuple(refused.names)):
            with refused.skip(kube, namespace, name):
                deleted += await _delete(store, kube.at(namespace), name, uid, version)
    return deleted


async def prune_strays(
    store: Store, kube: KubeClient, strays: StrayRuns, now: datetime, policy: RetentionPolicy
) -> int:
    """Delete a batch of the stray objects whose TTL expired before `now` and return their number."""
    listed = strays.listed()
    if not listed:
        return 0
    retentions = await store.expired_records.retentions(policy.plan_matters)
    refused = RefusedNamespaces()
    called = deleted = 0
    for run in listed:
        seconds = policy.object_seconds(retentions.get(run.project or ""))
        if run.ended_at + timedelta(seconds=seconds) >= now or run.place in refused.names:
            continue
        if called == BATCH_SIZE:
            break
        called += 1
        with refused.skip(kube, run.place, run.name):
            try:
                client = kube.at(run.place)
                deleted += await client.delete(RUN, run.name, uid=run.uid, resource_version=run.version)
            except errors.KubeConflict:
                # It changed: the watch notes the next version, or the next list.
                pass
            strays.remove(run.uid)
    return deleted


async def _delete(store: Store, kube: KubeClient, name: str, uid: str, version: int) -> bool:
    deleted = False
    try:
        deleted = await kube.delete(RUN, name, uid=uid, resource_version=str(version))
    except errors.KubeConflict:
        # The object changed: record it; the next round tries again.
        manifest = await kube.get(RUN, name)
        if manifest is not None and manifest["metadata"]["uid"] == uid:
            await store.run_writer.observe(Run(manifest), datetime.now(UTC))
            return False
    await store.run_writer.mark_deleted(name, uid, datetime.now(UTC))
    return deleted
