"""Tests of several replicas over one PostgreSQL: the guarantees of a single one hold."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.store.errors import StoreUnavailable
from api.store.index.claims.claims import ClaimDenied, ClaimGranted, ClaimRequest, ClaimWait
from api.store.index.idempotency import Idempotency
from api.store.index.runs.runs import RunRequest
from api.store.logs.build_logs import Chunk
from api.store.logs.event_log import NewEvent
from api.store.logs.postgres_event_logs import PostgresEventLogs
from api.store.sql.postgres.database import APPENDER_CONNECTIONS
from api.store.store import Store
from crds.limits import PlanLimits, Plans
from tests.unit.api.store import builders
from tests.unit.api.store.postgres_server import PostgresServer

PLANS = Plans({"free": PlanLimits(60, 2)})
REQUEST = RunRequest("demo", "dep-a", {})


@pytest.fixture
async def replicas(tmp_path: Path, postgres: PostgresServer) -> AsyncIterator[tuple[Store, Store, Store]]:
    url = postgres.database()
    # All in parallel: the schema is created once.
    opened = await asyncio.gather(*(Store.open(tmp_path, "crews", url) for _ in range(3)))
    await builders.add_demo_project(opened[0])
    yield tuple(opened)  # type: ignore[misc]
    for store in opened:
        await store.close()


Replicas = tuple[Store, Store, Store]


async def test_one_claim_is_granted(replicas: Replicas) -> None:
    run = await builders.create_run(replicas[0])
    answers = await asyncio.gather(
        *(
            replicas[number % 3].claims.grant(
                run, ClaimRequest("run-uid", f"pod-{number}", "nonce"), {}, builders.NOW
            )
            for number in range(60)
        )
    )
    granted = [answer for answer in answers if isinstance(answer, ClaimGranted)]
    assert len(granted) == 1
    assert all(isinstance(answer, ClaimDenied) for answer in answers if answer not in granted)


async def test_claims_respect_the_plan(replicas: Replicas) -> None:
    runs = [await builders.create_run(replicas[0]) for _ in range(12)]
    answers = await asyncio.gather(
        *(
            replicas[number % 3].claims.grant(
                run, ClaimRequest("run-uid", f"pod-{run}", "n"), {}, builders.NOW, PLANS
            )
            for number, run in enumerate(runs)
        )
    )
    assert [isinstance(answer, ClaimGranted) for answer in answers].count(True) == 2
    assert [answer == ClaimWait() for answer in answers].count(True) == 10


async def test_writers_of_one_log_leave_connections_to_others(replicas: Replicas) -> None:
    events, opened = replicas[0].events, []

    async def write_a() -> None:
        async with events.open_writer("run-a"):
            opened.append("a")

    async with events.open_writer("run-a"):
        waiting = [asyncio.create_task(write_a()) for _ in range(APPENDER_CONNECTIONS)]
        await asyncio.sleep(0)
        async with events.open_writer("run-b"):
            opened.append("b")
    await asyncio.gather(*waiting)
    assert opened == ["b", *"a" * len(waiting)]


async def test_orders_and_totals_of_created_runs(replicas: Replicas) -> None:
    use = Idempotency("key-1", "abc", "hash")
    accepted = await asyncio.gather(
        *(replicas[n % 3].runs.create(REQUEST, builders.NOW, use if n % 4 == 0 else None) for n in range(40))
    )
    assert sum(row is not None for n, (_, row) in enumerate(accepted) if n % 4 == 0) == 1
    names = {name for name, _ in accepted}
    for store in replicas:
        page = await store.runs.page(0, 100)
        assert {row.name for row in page.items} == names
        assert page.total == len(names) == len({row.ord for row in page.items}) == 31


async def test_concurrent_observes_keep_newest(replicas: Replicas) -> None:
    phases = ("Pending", "Running", "Failed")
    views = [builders.run(f"run-{n}", phase) for phase in phases for n in range(8)]
    await asyncio.gather(
        *(store.run_writer.observe(view, builders.NOW) for store in replicas for view in reversed(views))
    )
    page = await replicas[1].runs.page(0, 100, statuses=["failed"])
    assert page.total == len(page.items) == 8
    assert (await replicas[2].runs.page(0, 100)).total == 8


async def append_events(store: Store, run: str, *numbers: int) -> int:
    async with store.events.open_writer(run) as log:
        stored = await log.append([NewEvent(number, "log", {"message": str(number)}) for number in numbers])
    store.events.notify_appended(run)
    return stored


async def test_stream_is_complete_at_any_replica(replicas: Replicas) -> None:
    one, two, three = replicas
    run = await builders.create_run(one)
    seen: list[int] = []

    async def follow() -> None:
        while True:
            page = await three.events.read(run, len(seen), 3)
            seen.extend(event.id for event in page.events)
            if page.ended:
                return
            if not page.events:
                await three.events.wait(run, page.mark, 60)

    reader = asyncio.create_task(follow())
    await asyncio.sleep(0.05)
    await two.claims.grant(run, ClaimRequest("run-uid", "pod", "nonce"), {}, builders.NOW)
    two.events.notify_state_changed(run)
    for number in range(1, 11):
        assert await append_events(replicas[number % 2], run, number) == number
    # Repeating the call at another replica stores nothing.
    assert await append_events(two, run, 9, 10) == 10
    await one.run_writer.observe(builders.run(run, "Succeeded"), builders.NOW)
    await asyncio.wait_for(reader, 50)
    assert seen == list(range(1, 13))


async def test_replicas_in_the_longest_namespace_notify_each_other(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.database()
    one, two = await asyncio.gather(*(Store.open(tmp_path, "n" * 63, url) for _ in range(2)))
    others = [True]
    async with asyncio.timeout(50):
        # A connection that opens wakes all, and so did one that ended because of the notification.
        while any(others):
            mark = two.events.mark
            waits = [asyncio.create_task(two.events.wait(run, mark, 60)) for run in ("run-a", "run-b")]
            one.events.notify_appended("run-a")
            await waits[0]
            others = [wait.done() for wait in waits[1:]]
            waits[1].cancel()
            await asyncio.sleep(0.05)
    await one.close()
    await two.close()


async def test_no_append_after_end_with_lost_lock(replicas: Replicas) -> None:
    one, two, _ = replicas
    run = await builders.claim_run(one)
    await append_events(one, run, 1)
    with pytest.raises(StoreUnavailable, match="sealed"):
        async with one.events.open_writer(run) as log:
            # As after the loss of this replica's connection: the other replica does not wait for it.
            async with two.database.write() as connection:
                sealed = await two.events._logs._logs._tables.seal(connection, run)  # type: ignore[attr-defined]
            assert sealed == 1
            await log.append([NewEvent(2, "log", {})])


async def test_build_log_across_replicas(replicas: Replicas) -> None:
    one, two, three = replicas
    page = await three.build_logs.read("dep-a")
    waiting = asyncio.create_task(three.build_logs.wait("dep-a", page.mark, 60))
    await asyncio.sleep(0.05)
    assert await one.build_logs.append("dep-a", "pod", "assemble", [Chunk(1, "one\n")]) == 1
    await asyncio.wait_for(waiting, 50)
    again = [Chunk(1, "one\n"), Chunk(2, "two\0\n"), Chunk(4, "four\n")]
    assert await two.build_logs.append("dep-a", "pod", "assemble", again) == 2
    assert (await three.build_logs.read("dep-a")).text == "one\ntwo\0\n"
    await two.build_logs.remove("dep-a")
    assert (await one.build_logs.read("dep-a")).text == ""


async def test_waiter_sees_activation_at_other_replica(replicas: Replicas) -> None:
    one, two, _ = replicas
    waiting = asyncio.create_task(two.deployments.wait(two.deployments.mark(), 60))
    await asyncio.sleep(0.05)
    await one.projects.observe(builders.project(active="dep-b"))
    await asyncio.wait_for(waiting, 50)


async def test_read_during_deletion_keeps_numbers(
    replicas: Replicas,
) -> None:
    run = await builders.claim_run(replicas[0])
    logs = [PostgresEventLogs(replica.database, "crews") for replica in replicas]  # type: ignore[arg-type]
    async with logs[0].open_writer(run) as log:
        await log.append([NewEvent(number, "log", {"message": str(number)}) for number in range(1, 1201)])
    reader = await logs[1].read(run, 900, 200, 1200)
    assert [event.data["message"] for event in reader[1]] == [str(number) for number in range(901, 1101)]
    # Sealed, and the first part deleted, after the reader found no archive.
    assert not await logs[0].clear(run)
    assert await logs[1].read(run, 900, 200, 1200) == (1200, [])
    assert await logs[1].lines(run, 900, 200) == []
    assert len(await logs[1].lines(run, 1000, 200)) == 200
