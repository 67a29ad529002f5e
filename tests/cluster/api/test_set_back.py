"""etcd is restored from an older copy: its versions are smaller than those of the rows, and yet the truth."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from sqlalchemy import update

from api.store.sql.schema import deployments, projects, runs
from api.v1.runs.create import RunRequest, create_run
from crds.kinds import PROJECT, RUN
from tests.cluster.api.conftest import StoreTestbed, until

Start = Callable[..., Awaitable[None]]
LATER = 10**12
"""A version of a cluster that has gone on for years."""


async def accept(testbed: StoreTestbed) -> str:
    request = RunRequest("demo", "dep-a", {})
    return (await create_run(testbed.store, testbed.kube, request, datetime.now(UTC))).name


async def set_back(testbed: StoreTestbed) -> None:
    """From here on the rows know versions that the cluster does not have."""
    async with testbed.store.database.write() as connection:
        for table in (projects, deployments, runs):
            await connection.execute(
                update(table).where(table.c.namespace == testbed.kube.namespace).values(version=LATER)
            )


async def has(testbed: StoreTestbed, run: str, wanted: str) -> bool:
    row = await testbed.store.runs.get(run)
    return row is not None and row.status == wanted


async def test_rows_follow_a_cluster_rolled_back(testbed: StoreTestbed, work: Start) -> None:
    over, gone, live = await accept(testbed), await accept(testbed), await accept(testbed)
    await set_back(testbed)
    await testbed.end(over)
    await testbed.kube.delete(RUN, gone)
    active = {"activeDeployment": "dep-a", "activatedAt": "2026-11-21T10:00:00Z"}
    await testbed.kube.patch(PROJECT, "demo", {"status": active}, "status")
    await work()
    await until(lambda: has(testbed, over, "succeeded"))
    await until(lambda: has(testbed, gone, "canceled"))
    row = await testbed.store.deployments.get("dep-a")
    assert row is not None and row.status == "active"
    # And by the watch from there on.
    await testbed.end(live)
    await until(lambda: has(testbed, live, "succeeded"))


async def test_reported_end_stays(testbed: StoreTestbed, work: Start) -> None:
    run = await accept(testbed)
    await testbed.end(run)
    await work()
    await until(lambda: has(testbed, run, "succeeded"))
    row = await testbed.store.runs.get(run)
    await set_back(testbed)
    await testbed.kube.delete(RUN, run)
    # The copy had it while it was not over yet; what executes twice is refused by the claim.
    await testbed.kube.create(RUN, {"metadata": {"name": run}, "spec": {"project": "demo"}})
    await work()
    assert await testbed.store.runs.get(run) == row
