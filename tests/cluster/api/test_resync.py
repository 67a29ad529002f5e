"""A resync from lists finds changes that no watch reported."""

from datetime import UTC, datetime

from api.projection.resync import resync
from api.v1.runs.create import RunRequest, create_run
from crds.kinds import PROJECT, RUN
from tests.cluster.api.conftest import StoreTestbed


async def create_accepted_run(testbed: StoreTestbed) -> str:
    request = RunRequest("demo", "dep-a", {})
    return (await create_run(testbed.store, testbed.kube, request, datetime.now(UTC))).name


async def status(testbed: StoreTestbed, run: str) -> str | None:
    row = await testbed.store.runs.get(run)
    return row.status if row else None


async def test_resync_finds_created_changed_ended_and_deleted(testbed: StoreTestbed) -> None:
    ended, deleted, pending, recreated = [await create_accepted_run(testbed) for _ in range(4)]
    await testbed.kube.create(PROJECT, {"metadata": {"name": "other"}, "spec": {}})
    await testbed.kube.create(RUN, {"metadata": {"name": "run-by-hand"}, "spec": {"project": "demo"}})
    await testbed.end_run(ended)
    await testbed.kube.delete(RUN, deleted)
    before = await testbed.store.runs.get(recreated)
    await testbed.kube.delete(RUN, recreated)
    await testbed.kube.create(RUN, {"metadata": {"name": recreated}, "spec": {"project": "demo"}})
    # No watch is open.
    for _ in range(2):
        await resync(testbed.store, testbed.kube)
        assert await testbed.store.projects.get("other") is not None
        statuses = [await status(testbed, run) for run in ("run-by-hand", ended, deleted, pending, recreated)]
        assert statuses == ["pending", "succeeded", "canceled", "pending", "canceled"]
    after = await testbed.store.runs.get(recreated)
    assert before is not None and after is not None and after.uid == before.uid
    await testbed.kube.delete(PROJECT, "other")
    await resync(testbed.store, testbed.kube)
    assert await testbed.store.projects.get("other") is None
