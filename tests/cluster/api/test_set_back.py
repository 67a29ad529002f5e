"""etcd is restored from an older copy: its versions are smaller than those of the rows, and yet the truth."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from sqlalchemy import update

from api.store.sql.schema import deployments, projects, runs
from api.v1.runs.create import RunRequest, accept_run
from crds.kinds import PROJECT, RUN
from tests.cluster.api.conftest import Yard, until

Start = Callable[..., Awaitable[None]]
LATER = 10**12
"""A version of a cluster that has gone on for years."""


async def accept(yard: Yard) -> str:
    request = RunRequest("demo", "dep-a", {})
    return (await accept_run(yard.store, yard.kube, request, datetime.now(UTC))).name


async def set_back(yard: Yard) -> None:
    """From here on the rows know versions that the cluster does not have."""
    async with yard.store.database.write() as connection:
        for table in (projects, deployments, runs):
            await connection.execute(
                update(table).where(table.c.namespace == yard.kube.namespace).values(version=LATER)
            )


async def has(yard: Yard, run: str, wanted: str) -> bool:
    row = await yard.store.runs.get(run)
    return row is not None and row.status == wanted


async def test_rows_follow_a_cluster_that_was_set_back(yard: Yard, work: Start) -> None:
    over, gone, live = await accept(yard), await accept(yard), await accept(yard)
    await set_back(yard)
    await yard.end(over)
    await yard.kube.delete(RUN, gone)
    active = {"activeDeployment": "dep-a", "activatedAt": "2026-11-21T10:00:00Z"}
    await yard.kube.patch(PROJECT, "demo", {"status": active}, "status")
    await work()
    await until(lambda: has(yard, over, "succeeded"))
    await until(lambda: has(yard, gone, "canceled"))
    row = await yard.store.deployments.get("dep-a")
    assert row is not None and row.status == "active"
    # And by the watch from there on.
    await yard.end(live)
    await until(lambda: has(yard, live, "succeeded"))


async def test_an_end_that_was_told_stays(yard: Yard, work: Start) -> None:
    run = await accept(yard)
    await yard.end(run)
    await work()
    await until(lambda: has(yard, run, "succeeded"))
    row = await yard.store.runs.get(run)
    await set_back(yard)
    await yard.kube.delete(RUN, run)
    # The copy had it while it was not over yet; what executes twice is refused by the claim.
    await yard.kube.create(RUN, {"metadata": {"name": run}, "spec": {"project": "demo"}})
    await work()
    assert await yard.store.runs.get(run) == row
