"""etcd restored from an older backup: its lower resource versions still replace those of the rows."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from sqlalchemy import update

from api.store.sql.schema import deployments, projects, runs
from api.v1.runs.create import RunRequest, create_run
from crds.kinds import PROJECT, RUN
from tests.cluster.api.conftest import StoreTestbed, until

Start = Callable[..., Awaitable[None]]
NEWER_VERSION = 10**12
"""A resource version of a cluster that is years old."""


async def create_accepted_run(testbed: StoreTestbed) -> str:
    request = RunRequest("demo", "dep-a", {})
    return (await create_run(testbed.store, testbed.kube, request, datetime.now(UTC))).name


async def roll_back(testbed: StoreTestbed) -> None:
    """Give the rows resource versions that the cluster does not have."""
    async with testbed.store.database.write() as connection:
        for table in (projects, deployments, runs):
            await connection.execute(
                update(table).where(table.c.namespace == testbed.kube.namespace).values(version=NEWER_VERSION)
            )


async def has_status(testbed: StoreTestbed, run: str, expected: str) -> bool:
    row = await testbed.store.runs.get(run)
    return row is not None and row.status == expected


async def is_accounted(testbed: StoreTestbed, run: str) -> bool:
    row = await testbed.store.runs.get(run)
    return row is not None and row.status == "succeeded" and row.prompt_tokens is not None


async def test_rows_follow_a_cluster_that_is_rolled_back(testbed: StoreTestbed, work: Start) -> None:
    ended, deleted, live = (
        await create_accepted_run(testbed),
        await create_accepted_run(testbed),
        await create_accepted_run(testbed),
    )
    await roll_back(testbed)
    await testbed.end_run(ended)
    await testbed.kube.delete(RUN, deleted)
    active = {"activeDeployment": "dep-a", "activatedAt": "2026-11-21T10:00:00Z"}
    await testbed.kube.patch(PROJECT, "demo", {"status": active}, "status")
    await work()
    await until(lambda: has_status(testbed, ended, "succeeded"))
    await until(lambda: has_status(testbed, deleted, "canceled"))
    row = await testbed.store.deployments.get("dep-a")
    assert row is not None and row.status == "active"
    # The watch continues from there.
    await testbed.end_run(live)
    await until(lambda: has_status(testbed, live, "succeeded"))


async def test_reported_end_stays(testbed: StoreTestbed, work: Start) -> None:
    run = await create_accepted_run(testbed)
    await testbed.end_run(run)
    await work()
    await until(lambda: is_accounted(testbed, run))
    row = await testbed.store.runs.get(run)
    await roll_back(testbed)
    await testbed.kube.delete(RUN, run)
    # The backup has the run before its end; the claim refuses a second execution.
    await testbed.kube.create(RUN, {"metadata": {"name": run}, "spec": {"project": "demo"}})
    await work()
    assert await testbed.store.runs.get(run) == row
