"""Several replicas over one PostgreSQL: together they keep what one keeps alone."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.store.errors import StoreUnavailable
from api.store.index.claims.claims import Asked, Denied, Granted, Wait
from api.store.index.idempotency import Idempotency
from api.store.index.runs.runs import RunRequest
from api.store.logs.build_logs import Chunk
from api.store.logs.event_log import Said
from api.store.logs.postgres_event_logs import TableEventLogs
from api.store.store import Store
from crds.limits import PlanLimits, Plans
from tests.unit.api.store import builders
from tests.unit.api.store.postgres_server import Server

PLANS = Plans({"free": PlanLimits(60, 2)})
REQUEST = RunRequest("demo", "dep-a", {})


@pytest.fixture
async def replicas(tmp_path: Path, postgres: Server) -> AsyncIterator[tuple[Store, Store, Store]]:
    url = postgres.database()
    # All at once: the schema is made once.
    opened = await asyncio.gather(*(Store.open(tmp_path, "crews", url) for _ in range(3)))
    await builders.yard(opened[0])
    yield tuple(opened)  # type: ignore[misc]
    for store in opened:
        await store.close()


Replicas = tuple[Store, Store, Store]


async def test_of_many_askers_at_all_replicas_one_is_granted(replicas: Replicas) -> None:
    run = await builders.accepted(replicas[0])
    answers = await asyncio.gather(
        *(
            replicas[number % 3].claims.ask(run, Asked("run-uid", f"pod-{number}", "nonce"), {}, builders.NOW)
            for number in range(60)
        )
    )
    granted = [answer for answer in answers if isinstance(answer, Granted)]
    assert len(granted) == 1
    assert all(isinstance(answer, Denied) for answer in answers if answer not in granted)


async def test_claims_at_all_replicas_never_exceed_the_plan(replicas: Replicas) -> None:
    runs = [await builders.accepted(replicas[0]) for _ in range(12)]
    answers = await asyncio.gather(
        *(
            replicas[number % 3].claims.ask(run, Asked("run-uid", f"pod-{run}", "n"), {}, builders.NOW, PLANS)
            for number, run in enumerate(runs)
        )
    )
    assert [isinstance(answer, Granted) for answer in answers].count(True) == 2
    assert [answer == Wait() for answer in answers].count(True) == 10


async def test_runs_accepted_at_all_replicas_have_orders_and_totals_of_one(replicas: Replicas) -> None:
    use = Idempotency("key-1", "abc", "hash")
    accepted = await asyncio.gather(
        *(replicas[n % 3].runs.accept(REQUEST, builders.NOW, use if n % 4 == 0 else None) for n in range(40))
    )
    assert [made for n, (_, made) in enumerate(accepted) if n % 4 == 0].count(True) == 1
    names = {name for name, _ in accepted}
    for store in replicas:
        page = await store.runs.page(0, 100)
        assert {row.name for row in page.items} == names
        assert page.total == len(names) == len({row.ord for row in page.items}) == 31


async def test_views_at_all_replicas_leave_the_newest_and_true_totals(replicas: Replicas) -> None:
    phases = ("Pending", "Running", "Failed")
    views = [builders.run(f"run-{n}", phase) for phase in phases for n in range(8)]
    await asyncio.gather(
        *(store.record.observe(view, builders.NOW) for store in replicas for view in reversed(views))
    )
    page = await replicas[1].runs.page(0, 100, status="failed")
    assert page.total == len(page.items) == 8
    assert (await replicas[2].runs.page(0, 100)).total == 8


async def say(store: Store, run: str, *numbers: int) -> int:
    async with store.events.hold(run) as log:
        stored = await log.say([Said(number, "log", {"message": str(number)}) for number in numbers])
    store.events.told(run)
    return stored


async def test_a_stream_at_any_replica_is_complete_wherever_it_is_written(replicas: Replicas) -> None:
    one, two, three = replicas
    run = await builders.accepted(one)
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
    await two.claims.ask(run, Asked("run-uid", "pod", "nonce"), {}, builders.NOW)
    two.events.turned(run)
    for number in range(1, 11):
        assert await say(replicas[number % 2], run, number) == number
    # The same again, elsewhere, is known.
    assert await say(two, run, 9, 10) == 10
    await one.record.observe(builders.run(run, "Succeeded"), builders.NOW)
    await asyncio.wait_for(reader, 50)
    assert seen == list(range(1, 13))


async def test_nothing_is_said_after_the_end_although_the_lock_was_lost(replicas: Replicas) -> None:
    one, two, _ = replicas
    run = await builders.claimed(one)
    await say(one, run, 1)
    with pytest.raises(StoreUnavailable, match="ended"):
        async with one.events.hold(run) as log:
            # As after the end of this replica's connection: another one did not wait for it.
            async with two.database.write() as connection:
                sealed = await two.events._logs._logs._tables.seal(connection, run)  # type: ignore[attr-defined]
            assert sealed == 1
            await log.say([Said(2, "log", {})])


async def test_a_build_log_is_one_wherever_it_is_written_and_followed(replicas: Replicas) -> None:
    one, two, three = replicas
    page = await three.buildlogs.read("dep-a")
    waiting = asyncio.create_task(three.buildlogs.wait("dep-a", page.mark, 60))
    await asyncio.sleep(0.05)
    assert await one.buildlogs.append("dep-a", "pod", "assemble", [Chunk(1, "one\n")]) == 1
    await asyncio.wait_for(waiting, 50)
    again = [Chunk(1, "one\n"), Chunk(2, "two\0\n"), Chunk(4, "four\n")]
    assert await two.buildlogs.append("dep-a", "pod", "assemble", again) == 2
    assert (await three.buildlogs.read("dep-a")).text == "one\ntwo\0\n"
    await two.buildlogs.remove("dep-a")
    assert (await one.buildlogs.read("dep-a")).text == ""


async def test_a_waiter_hears_of_an_activation_at_another_replica(replicas: Replicas) -> None:
    one, two, _ = replicas
    waiting = asyncio.create_task(two.deployments.wait(two.deployments.mark(), 60))
    await asyncio.sleep(0.05)
    await one.projects.observe(builders.project(active="dep-b"))
    await asyncio.wait_for(waiting, 50)


async def test_a_log_that_is_just_being_deleted_gives_no_event_under_the_number_of_another(
    replicas: Replicas,
) -> None:
    run = await builders.claimed(replicas[0])
    logs = [TableEventLogs(replica.database, "crews") for replica in replicas]  # type: ignore[arg-type]
    async with logs[0].hold(run) as log:
        await log.say([Said(number, "log", {"message": str(number)}) for number in range(1, 1201)])
    reader = await logs[1].read(run, 900, 200, 1200)
    assert [record["s"] for record in reader[1]] == list(range(901, 1101))
    # It is sealed, and the first piece goes, after the reader has looked for the archive in vain.
    assert not await logs[0].clear(run)
    assert await logs[1].read(run, 900, 200, 1200) == (1200, [])
    assert await logs[1].lines(run, 900, 200) == []
    assert len(await logs[1].lines(run, 1000, 200)) == 200
