"""Retention deletes ended runs from cluster and index in steps; a name never executes twice."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp.test_utils import TestClient

from api.maintenance.prune_objects import prune_objects
from api.maintenance.retention import RetentionPolicy
from api.store.sql.schema import tombstones
from crds.kinds import PROJECT, RUN
from crds.objects import Run
from crds.times import format_second
from tests.cluster.api.conftest import StoreTestbed, until
from tests.cluster.api.test_projector import create_accepted_run
from tests.cluster.api.test_result import HOLDER, RESULT, call, create_claimed_run, send_events_and_artifact

Pods = TestClient[Any, Any]
Start = Callable[..., Awaitable[None]]


async def test_retention_deletes_object_then_log_then_record(
    testbed: StoreTestbed, pods: Pods, work: Start
) -> None:
    await testbed.kube.patch(PROJECT, "demo", {"spec": {"retention": {"runs": "1s", "records": "1h"}}})
    await work(seal_after=0.5)
    run = await create_claimed_run(testbed, pods)
    await send_events_and_artifact(testbed, pods, run)
    assert (await call(testbed, pods, run, "result", RESULT))[0] == 200
    started = (await testbed.get(run))["status"]["claim"]["time"]
    ended = {"startTime": started, "completionTime": format_second(datetime.now(UTC))}
    await testbed.end_run(run, **ended, project="demo", deployment="dep-a")

    async def pruned() -> bool:
        row = await testbed.store.runs.get(run)
        return row is not None and row.ended and await testbed.kube.get(RUN, run) is None

    async def sealed() -> bool:
        return await testbed.store.archives.find(run) is not None

    await until(pruned, 120)
    await until(sealed, 120)
    assert [event.id for event in (await testbed.store.events.read(run, 0, 9)).events] == [1, 2, 3, 4, 5]
    await testbed.kube.patch(PROJECT, "demo", {"spec": {"retention": {"records": "1s"}}})
    await work(seal_after=0.5)

    async def records_deleted() -> bool:
        return await testbed.store.runs.get(
            run
        ) is None and not await testbed.store.expired_records.list_remains(1)

    await until(records_deleted, 120)
    assert [
        blob async for page in testbed.store.blobs.list_folder(testbed.config.namespace) for blob in page
    ] == []
    # Applied again, no pod can claim it and the API does not list it.
    recreated = await testbed.kube.create(RUN, {"metadata": {"name": run}, "spec": {"project": "demo"}})
    status, _ = await call(testbed, pods, run, "claim", HOLDER, uid=recreated["metadata"]["uid"])
    assert status == 404
    assert (await testbed.store.runs.page(0, 9)).total == 0


async def test_changed_object_is_not_deleted_on_a_stale_view(testbed: StoreTestbed) -> None:
    run = await create_accepted_run(testbed)
    await testbed.end_run(run, project="demo", deployment="dep-a")
    now = datetime.now(UTC)
    await testbed.store.run_writer.observe(Run(await testbed.get(run)), now)
    await testbed.kube.patch(RUN, run, {"metadata": {"labels": {"seen": "by-others"}}})
    assert await prune_objects(testbed.store, testbed.kube, now, RetentionPolicy(10, 1)) == 0
    assert await testbed.kube.get(RUN, run) is not None
    assert await prune_objects(testbed.store, testbed.kube, now, RetentionPolicy(10, 1)) == 1
    assert await testbed.kube.get(RUN, run) is None
    # Nor is a recreated object of the same name.
    recreated = await testbed.kube.create(RUN, {"metadata": {"name": run}, "spec": {"project": "demo"}})
    assert await prune_objects(testbed.store, testbed.kube, now, RetentionPolicy(10, 1)) == 0
    assert (await testbed.get(run))["metadata"]["uid"] == recreated["metadata"]["uid"]


async def test_an_ended_run_without_a_row_of_its_own_is_deleted(testbed: StoreTestbed, work: Start) -> None:
    executed = await create_accepted_run(testbed)
    await testbed.end_run(executed, project="demo", deployment="dep-a")
    await work(run_ttl=0.2)
    await until(lambda: absent(testbed, executed))
    body: dict[str, Any] = {"metadata": {"name": executed}, "spec": {"project": "demo"}}
    await testbed.kube.create(RUN, body)
    await testbed.end_run(executed, phase="Canceled", project="demo")
    await until(lambda: absent(testbed, executed))
    # As a GitOps tool does it: that one stays, because the tool would create it again and again.
    owner = {"apiVersion": PROJECT.api_version, "kind": "Project", "name": "demo"}
    body["metadata"]["ownerReferences"] = [{**owner, "uid": testbed.project["metadata"]["uid"]}]
    await testbed.kube.create(RUN, body)
    error = {"reason": "AlreadyExecuted", "message": "it ran"}
    await testbed.end_run(executed, phase="Failed", project="demo", error=error)
    kept = await testbed.get(executed)
    # Also one that the list at the start finds.
    await work()
    now = datetime.now(UTC)
    async with testbed.store.database.write() as connection:
        tombstone = {"namespace": testbed.config.namespace, "name": "run-tombstone", "ended_at": now}
        await connection.execute(tombstones.insert().values(tombstone))
    await testbed.kube.create(RUN, {"metadata": {"name": "run-tombstone"}, "spec": {"project": "gone"}})
    await testbed.kube.create(RUN, {"metadata": {"name": "run-live"}, "spec": {"project": "demo"}})
    await testbed.end_run(
        "run-tombstone", phase="Failed", error={"reason": "ProjectNotFound", "message": "no"}
    )
    assert await testbed.kube.get(RUN, "run-tombstone") is not None
    await work(run_ttl=0.2)
    await until(lambda: absent(testbed, "run-tombstone"))
    assert await testbed.kube.get(RUN, "run-live") is not None
    assert (await testbed.get(executed))["metadata"]["uid"] == kept["metadata"]["uid"]


async def absent(testbed: StoreTestbed, run: str) -> bool:
    return await testbed.kube.get(RUN, run) is None
