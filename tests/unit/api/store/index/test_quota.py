"""The places of a plan: never more claimed runs than it allows, and who waits knows how many are ahead."""

import asyncio
import random

import pytest

from api.store.index.claims.claims import Asked, Granted, Wait
from api.store.store import Store
from crds.limits import PlanLimits, Plans
from tests.unit.api.store import builders

ANSWER = {"deployment_id": "dep_a", "entrypoint": "main:kickoff"}
PLANS = Plans({"free": PlanLimits(60, 2), "pro": PlanLimits(300, 3)})
DONE = {"outcome": "succeeded", "durationMs": 1}


async def ask(store: Store, run: str) -> object:
    return await store.claims.ask(run, Asked("run-uid", f"pod-{run}", "nonce"), ANSWER, builders.NOW, PLANS)


async def report(store: Store, run: str) -> None:
    assert await store.claims.report(run, f"pod-{run}", "nonce", DONE) is False


async def position(store: Store, run: str) -> int | None:
    row = await store.runs.get(run)
    assert row is not None
    return await store.places.position(row, PLANS)


@pytest.mark.parametrize(("plan", "limit"), [("free", 2), ("pro", 3), ("unheard-of", 2)])
async def test_claims_at_once_never_exceed_the_plan_and_each_gets_its_turn(
    store: Store, plan: str, limit: int
) -> None:
    await builders.yard(store)
    await store.projects.observe(builders.project(active="dep-a", plan=plan))
    runs = [await builders.accepted(store) for _ in range(15)]
    held, most = 0, 0

    async def live(run: str) -> None:
        nonlocal held, most
        while not isinstance(answer := await ask(store, run), Granted):
            assert answer == Wait()
            await asyncio.sleep(random.random() / 100)
        held += 1
        most = max(most, held)
        await asyncio.sleep(random.random() / 100)
        held -= 1
        await report(store, run)

    first = await asyncio.gather(*(ask(store, run) for run in runs))
    assert [isinstance(answer, Granted) for answer in first].count(True) == limit
    await asyncio.gather(*(live(run) for run in runs))
    assert 0 < most <= limit


async def test_who_waited_asks_with_the_same_nonce_and_who_holds_a_place_keeps_it(store: Store) -> None:
    await builders.yard(store)
    first, second, third = [await builders.accepted(store) for _ in range(3)]
    assert isinstance(await ask(store, first), Granted) and isinstance(await ask(store, second), Granted)
    assert await ask(store, third) == Wait()
    again = await ask(store, first)
    assert isinstance(again, Granted) and not again.first
    await store.record.observe(builders.run(second, "Failed"), builders.NOW)
    assert isinstance(await ask(store, third), Granted)


async def test_a_project_is_not_held_back_by_another_one(store: Store) -> None:
    await builders.yard(store)
    await store.projects.observe(builders.project("other", uid="project-2"))
    mine = [await builders.accepted(store) for _ in range(2)]
    theirs = await builders.accepted(store, project="other")
    spec = {"project": "other", "deployment": "dep-a"}
    await store.record.observe(builders.run(theirs, spec=spec, project="other"), builders.NOW)
    for run in (*mine, theirs):
        assert isinstance(await ask(store, run), Granted)


async def test_positions_follow_the_queue(store: Store) -> None:
    await builders.yard(store)
    runs = [await builders.accepted(store) for _ in range(5)]

    async def positions() -> list[int | None]:
        return [await position(store, run) for run in runs]

    # The first two have the free places, whether or not their pods have asked for them yet.
    assert await positions() == [None, None, 1, 2, 3]
    await ask(store, runs[0])
    assert await positions() == [None, None, 1, 2, 3]
    await report(store, runs[0])
    assert await positions() == [None, None, None, 1, 2]
    cancel = {"project": "demo", "deployment": "dep-a", "cancel": True}
    await store.record.observe(builders.run(runs[3], spec=cancel), builders.NOW)
    assert await positions() == [None, None, None, None, 1]
    await store.record.observe(builders.run(runs[1], "Failed"), builders.NOW)
    assert await positions() == [None, None, None, None, None]


async def test_a_run_that_waits_for_its_build_stands_in_nobodys_way(store: Store) -> None:
    await builders.yard(store)
    runs = [await builders.accepted(store) for _ in range(4)]
    told = {"type": "Succeeded", "status": "Unknown", "reason": "WaitingForDeployment", "message": "m"}
    await store.record.observe(builders.run(runs[0], conditions=[told]), builders.NOW)
    assert [await position(store, run) for run in runs] == [None, None, None, 1]
