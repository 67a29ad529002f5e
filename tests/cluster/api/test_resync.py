"""What no watch ever told is in the rows after a look at the lists."""

from datetime import UTC, datetime

from api.projection.resync import resync
from api.v1.runs.create import RunRequest, create_run
from crds.kinds import PROJECT, RUN
from tests.cluster.api.conftest import StoreTestbed


async def accept(testbed: StoreTestbed) -> str:
    request = RunRequest("demo", "dep-a", {})
    return (await create_run(testbed.store, testbed.kube, request, datetime.now(UTC))).name


async def status(testbed: StoreTestbed, run: str) -> str | None:
    row = await testbed.store.runs.get(run)
    return row.status if row else None


async def test_resync_finds_created_changed_ended_and_deleted(testbed: StoreTestbed) -> None:
    ended, gone, stays, renewed = [await accept(testbed) for _ in range(4)]
    await testbed.kube.create(PROJECT, {"metadata": {"name": "other"}, "spec": {}})
    await testbed.kube.create(RUN, {"metadata": {"name": "run-by-hand"}, "spec": {"project": "demo"}})
    await testbed.end(ended)
    await testbed.kube.delete(RUN, gone)
    before = await testbed.store.runs.get(renewed)
    await testbed.kube.delete(RUN, renewed)
    await testbed.kube.create(RUN, {"metadata": {"name": renewed}, "spec": {"project": "demo"}})
    # Nobody watches.
    for _ in range(2):
        await resync(testbed.store, testbed.kube)
        assert await testbed.store.projects.get("other") is not None
        found = [await status(testbed, run) for run in ("run-by-hand", ended, gone, stays, renewed)]
        assert found == ["pending", "succeeded", "canceled", "pending", "canceled"]
    now = await testbed.store.runs.get(renewed)
    assert before is not None and now is not None and now.uid == before.uid
    await testbed.kube.delete(PROJECT, "other")
    await resync(testbed.store, testbed.kube)
    assert await testbed.store.projects.get("other") is None
