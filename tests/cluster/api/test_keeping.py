"""What ended goes step by step from the cluster and the index, and its name is never executed again."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp.test_utils import TestClient

from api.maintenance.prune_objects import prune
from crds.kinds import PROJECT, RUN
from crds.objects import Run
from crds.times import format_second
from tests.cluster.api.conftest import Yard, until
from tests.cluster.api.test_projector import accept
from tests.cluster.api.test_result import HOLDER, RESULT, call, claimed, deliver

Pods = TestClient[Any, Any]
Start = Callable[..., Awaitable[None]]


async def test_object_then_log_then_record(yard: Yard, pods: Pods, work: Start) -> None:
    await yard.kube.patch(PROJECT, "demo", {"spec": {"retention": {"runs": "1s", "records": "1h"}}})
    await work(seal_after=0.5)
    run = await claimed(yard, pods)
    await deliver(yard, pods, run)
    assert (await call(yard, pods, run, "result", RESULT))[0] == 200
    started = (await yard.get(run))["status"]["claim"]["time"]
    ended = {"startTime": started, "completionTime": format_second(datetime.now(UTC))}
    await yard.end(run, **ended, project="demo", deployment="dep-a")

    async def pruned() -> bool:
        row = await yard.store.runs.get(run)
        return row is not None and row.ended and await yard.kube.get(RUN, run) is None

    async def sealed() -> bool:
        return await yard.store.archives.find(run) is not None

    await until(pruned, 120)
    await until(sealed, 120)
    assert [event.id for event in (await yard.store.events.read(run, 0, 9)).events] == [1, 2, 3, 4, 5]
    await yard.kube.patch(PROJECT, "demo", {"spec": {"retention": {"records": "1s"}}})
    await work(seal_after=0.5)

    async def buried() -> bool:
        return await yard.store.runs.get(run) is None and not await yard.store.records.left(1)

    await until(buried, 120)
    assert [blob async for page in yard.store.blobs.below(yard.config.namespace) for blob in page] == []
    # Applied again, it is given to no pod, and is not shown.
    again = await yard.kube.create(RUN, {"metadata": {"name": run}, "spec": {"project": "demo"}})
    status, _ = await call(yard, pods, run, "claim", HOLDER, uid=again["metadata"]["uid"])
    assert status == 404
    assert (await yard.store.runs.page(0, 9)).total == 0


async def test_an_object_that_changed_is_not_deleted_on_an_old_view(yard: Yard) -> None:
    run = await accept(yard)
    await yard.end(run, project="demo", deployment="dep-a")
    now = datetime.now(UTC)
    await yard.store.record.observe(Run(await yard.get(run)), now)
    await yard.kube.patch(RUN, run, {"metadata": {"labels": {"seen": "by-others"}}})
    assert await prune(yard.store, yard.kube, now, 1, 10) == 0
    assert await yard.kube.get(RUN, run) is not None
    assert await prune(yard.store, yard.kube, now, 1, 10) == 1
    assert await yard.kube.get(RUN, run) is None
    # Nor is one of the same name that was made anew.
    made = await yard.kube.create(RUN, {"metadata": {"name": run}, "spec": {"project": "demo"}})
    assert await prune(yard.store, yard.kube, now, 1, 10) == 0
    assert (await yard.get(run))["metadata"]["uid"] == made["metadata"]["uid"]
