"""Tests of run slots: claimed runs never exceed the plan, waiting runs have a queue position."""

import asyncio
import random

import pytest

from api.store.index.claims.claims import ClaimGranted, ClaimRequest, ClaimWait
from api.store.store import Store
from crds.limits import PlanLimits, Plans
from tests.unit.api.store import builders

ANSWER = {"deployment_id": "dep_a", "entrypoint": "main:kickoff"}
PLANS = Plans({"free": PlanLimits(60, 2), "pro": PlanLimits(300, 3)})
DONE = {"outcome": "succeeded", "durationMs": 1}


async def ask(store: Store, run: str) -> object:
    return await store.claims.grant(
        run, ClaimRequest("run-uid", f"pod-{run}", "nonce"), ANSWER, builders.NOW, PLANS
    )


async def report(store: Store, run: str) -> None:
    assert await store.claims.record_result(run, f"pod-{run}", "nonce", DONE) is False


async def position(store: Store, run: str) -> int | None:
    row = await store.runs.get(run)
    assert row is not None
    return await store.run_queue.position(row, PLANS)


@pytest.mark.parametrize(("plan", "limit"), [("free", 2), ("pro", 3), ("unheard-of", 2)])
async def test_concurrent_claims_respect_plan(store: Store, plan: str, limit: int) -> None:
    await builders.add_demo_project(store)
    await store.projects.observe(builders.project(active="dep-a", plan=plan))
    runs = [await builders.create_run(store) for _ in range(15)]
    held, most = 0, 0

    async def live(run: str) -> None:
        nonlocal held, most
        while not isinstance(answer := await ask(store, run), ClaimGranted):
            assert answer == ClaimWait()
            await asyncio.sleep(random.random() / 100)
        held += 1
        most = max(most, held)
        await asyncio.sleep(random.random() / 100)
        held -= 1
        await report(store, run)

    first = await asyncio.gather(*(ask(store, run) for run in runs))
    assert [isinstance(answer, ClaimGranted) for answer in first].count(True) == limit
    await asyncio.gather(*(live(run) for run in runs))
    assert 0 < most <= limit


async def test_waiting_pod_retries_and_holder_keeps_slot(store: Store) -> None:
    await builders.add_demo_project(store)
    first, second, third = [await builders.create_run(store) for _ in range(3)]
    assert isinstance(await ask(store, first), ClaimGranted) and isinstance(
        await ask(store, second), ClaimGranted
    )
    assert await ask(store, third) == ClaimWait()
    again = await ask(store, first)
    assert isinstance(again, ClaimGranted) and not again.first
    await store.run_writer.observe(builders.run(second, "Failed"), builders.NOW)
    assert isinstance(await ask(store, third), ClaimGranted)


async def test_projects_are_independent(store: Store) -> None:
    await builders.add_demo_project(store)
    await store.projects.observe(builders.project("other", uid="project-2"))
    mine = [await builders.create_run(store) for _ in range(2)]
    theirs = await builders.create_run(store, project="other")
    spec = {"project": "other", "deployment": "dep-a"}
    await store.run_writer.observe(builders.run(theirs, spec=spec, project="other"), builders.NOW)
    for run in (*mine, theirs):
        assert isinstance(await ask(store, run), ClaimGranted)


async def test_queue_positions(store: Store) -> None:
    await builders.add_demo_project(store)
    runs = [await builders.create_run(store) for _ in range(5)]

    async def positions() -> list[int | None]:
        return [await position(store, run) for run in runs]

    # The first two have the free slots, whether or not their pods have claimed yet.
    assert await positions() == [None, None, 1, 2, 3]
    await ask(store, runs[0])
    assert await positions() == [None, None, 1, 2, 3]
    await report(store, runs[0])
    assert await positions() == [None, None, None, 1, 2]
    cancel = {"project": "demo", "deployment": "dep-a", "cancel": True}
    await store.run_writer.observe(builders.run(runs[3], spec=cancel), builders.NOW)
    assert await positions() == [None, None, None, None, 1]
    await store.run_writer.observe(builders.run(runs[1], "Failed"), builders.NOW)
    assert await positions() == [None, None, None, None, None]


@pytest.mark.parametrize("reason", ["WaitingForDeployment", "ImageNotVerified", "PodNameTaken"])
async def test_run_that_takes_no_slot_is_outside_queue(store: Store, reason: str) -> None:
    await builders.add_demo_project(store)
    runs = [await builders.create_run(store) for _ in range(4)]
    condition = {"type": "Succeeded", "status": "Unknown", "reason": reason, "message": "m"}
    await store.run_writer.observe(builders.run(runs[0], conditions=[condition]), builders.NOW)
    assert [await position(store, run) for run in runs] == [None, None, None, 1]
