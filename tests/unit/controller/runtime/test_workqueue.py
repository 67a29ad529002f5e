"""The work queue: serial per key, coalescing, delayed, with back-off."""

import asyncio
import contextlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.runtime.queues import Queues
from controller.runtime.workqueue import (
    BACKOFF_MAX_SECONDS,
    MAX_STALE_ENTRIES,
    ReconcileKey,
    WorkQueue,
    backoff,
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


KEY = ReconcileKey("runs", "run-a")
OTHER = ReconcileKey("runs", "run-b")


async def taken(queue: WorkQueue) -> ReconcileKey | None:
    try:
        return await asyncio.wait_for(queue.get(), 0.01)
    except TimeoutError:
        return None


async def test_key_is_deduplicated_and_repeated_if_added_while_active():
    queue = WorkQueue(Clock())
    for _ in range(3):
        queue.add(KEY)
    assert await taken(queue) == KEY
    assert await taken(queue) is None
    queue.add(KEY)
    queue.add(KEY)
    assert await taken(queue) is None
    queue.done(KEY)
    assert await taken(queue) == KEY
    queue.done(KEY)
    assert await taken(queue) is None


async def test_keys_come_in_the_order_of_becoming_ready():
    clock = Clock()
    queue = WorkQueue(clock)
    queue.add(OTHER, after=1)
    queue.add(KEY)
    clock.now += 2
    assert [await taken(queue), await taken(queue)] == [KEY, OTHER]


async def test_keys_of_events_come_before_those_of_lists():
    clock = Clock()
    queue = WorkQueue(clock)
    for number in range(4):
        queue.add(ReconcileKey("runs", f"listed-{number}"), listed=True)
    clock.now += 1
    for number in range(6):
        queue.add(ReconcileKey("runs", f"event-{number}"))
    assert (queue.depth, queue.oldest_ready()) == (10, 1.0)
    names = [(await taken(queue) or KEY).name for _ in range(10)]
    # One in four is that of a list: it never waits for all events.
    assert names == [
        "event-0", "event-1", "event-2", "listed-0", "event-3", "event-4", "event-5",
        "listed-1", "listed-2", "listed-3",
    ]  # fmt: skip
    assert (queue.depth, queue.oldest_ready()) == (0, 0.0)


async def test_an_event_raises_the_priority_of_a_listed_key():
    clock = Clock()
    queue = WorkQueue(clock)
    for key in (OTHER, KEY, OTHER, KEY):
        queue.add(key, listed=True)
    clock.now += 1
    queue.add(KEY)
    queue.add(KEY, listed=True)
    assert (queue.depth, queue.oldest_ready()) == (2, 1.0)
    assert [await taken(queue), await taken(queue), await taken(queue)] == [KEY, OTHER, None]


async def test_earliest_delay_counts_and_forgotten_keys_never_come():
    clock = Clock()
    queue = WorkQueue(clock)
    queue.add(KEY, after=10)
    queue.add(KEY, after=5)
    queue.add(KEY, after=20)
    clock.now += 4
    assert await taken(queue) is None
    clock.now += 2
    assert await taken(queue) == KEY
    queue.done(KEY)
    clock.now += 100
    assert await taken(queue) is None
    queue.add(KEY, after=1)
    queue.remove(KEY)
    clock.now += 5
    assert await taken(queue) is None


def test_forgotten_delayed_keys_are_evicted():
    queue = WorkQueue(Clock())
    for number in range(3000):
        key = ReconcileKey("runs", f"run-{number}")
        queue.add(key, 4000)
        queue.add(key, 3600)
        if number % 10:
            queue.remove(key)
    assert 300 <= queue.scheduled <= 1000
    for number in range(3000):
        queue.remove(ReconcileKey("runs", f"run-{number}"))
    assert queue.scheduled <= MAX_STALE_ENTRIES


async def test_delayed_keys_survive_the_eviction_of_forgotten_ones():
    queue = WorkQueue(clock := Clock())
    planned = [ReconcileKey("runs", f"run-{number}") for number in range(0, 3000, 100)]
    for number in range(3000):
        key = ReconcileKey("runs", f"run-{number}")
        queue.add(key, 10 + number)
        if key not in planned:
            queue.remove(key)
    clock.now += 4000
    came = []
    while (key := await taken(queue)) is not None:
        came.append(key)
        queue.done(key)
    assert came == planned


async def test_failed_key_is_retried_with_backoff_until_success():
    clock = Clock()
    queue = WorkQueue(clock)
    queue.add(KEY)
    for _ in range(20):
        clock.now += BACKOFF_MAX_SECONDS
        assert await taken(queue) == KEY
        queue.done(KEY, failed=True)
    clock.now += BACKOFF_MAX_SECONDS / 2 - 1
    assert await taken(queue) is None
    clock.now += BACKOFF_MAX_SECONDS
    assert await taken(queue) == KEY
    queue.done(KEY)
    queue.add(KEY)
    await taken(queue)
    queue.done(KEY, failed=True)
    clock.now += 0.06
    assert await taken(queue) == KEY


async def test_backoff_of_a_deleted_object_grows_until_success():
    clock = Clock()
    queue = WorkQueue(clock)
    queue.add(KEY)
    for _ in range(20):
        clock.now += BACKOFF_MAX_SECONDS
        assert await taken(queue) == KEY
        # Its reconcile removes the key, then fails.
        queue.remove(KEY)
        queue.done(KEY, failed=True)
    clock.now += BACKOFF_MAX_SECONDS / 2 - 1
    assert await taken(queue) is None
    clock.now += BACKOFF_MAX_SECONDS
    assert await taken(queue) == KEY
    queue.remove(KEY)
    queue.done(KEY)
    assert not queue._failures


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_backoff_is_bounded_and_never_zero(failures, draw):
    assert 0 < backoff(failures, lambda: draw) <= BACKOFF_MAX_SECONDS


@pytest.mark.parametrize(
    ("failures", "shortest", "longest"),
    [(1, 0.025, 0.05), (2, 0.05, 0.1), (10, 12.8, 25.6), (99, 15.0, 30.0)],
)
def test_half_of_a_backoff_is_random(failures, shortest, longest):
    assert backoff(failures, lambda: 0.0) == shortest
    assert backoff(failures, lambda: 1.0) == longest
    assert len({backoff(failures) for _ in range(20)}) > 1


async def test_the_age_of_the_oldest_ready_key_counts_waiting_not_working():
    clock = Clock()
    queue = WorkQueue(clock)
    assert queue.oldest_ready() == 0
    queue.add(KEY)
    clock.now += 7
    queue.add(OTHER)
    assert queue.oldest_ready() == 7
    assert queue.depth == 2
    await taken(queue)
    assert queue.oldest_ready() == 0


async def test_a_delayed_key_wakes_a_waiting_worker():
    queue = WorkQueue(asyncio.get_running_loop().time)
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add(KEY, after=60)
    queue.add(OTHER, after=0.01)
    assert await asyncio.wait_for(waiting, 120) == OTHER


async def test_delayed_key_wakes_one_of_many_workers():
    loop, looked = asyncio.get_running_loop(), [0]

    def clock():
        looked[0] += 1
        return loop.time()

    queue = WorkQueue(clock)
    waiting = {asyncio.create_task(queue.get()) for _ in range(50)}
    await asyncio.sleep(0)
    looked[0] = 0
    for number in range(10):
        queue.add(ReconcileKey("runs", f"run-{number}"), after=0.01 + number / 1000)
    async with asyncio.timeout(120):
        while len(done := {task for task in waiting if task.done()}) < 10:
            await asyncio.sleep(0.01)
    assert looked[0] < 100
    assert {task.result().name for task in done} == {f"run-{number}" for number in range(10)}
    for task in waiting - done:
        task.cancel()


async def test_cancelled_worker_passes_its_key_to_another():
    queue = WorkQueue(asyncio.get_running_loop().time)
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    queue.add(KEY)
    first.cancel()
    assert await asyncio.wait_for(second, 120) == KEY


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5))
def test_one_key_is_never_processed_twice_at_a_time_or_lost(seed, workers):
    """Each addition is followed by a look that began after it."""
    chance = random.Random(seed)
    keys = [ReconcileKey("runs", f"run-{index}") for index in range(4)]

    async def play() -> None:
        queue = WorkQueue(asyncio.get_running_loop().time)
        active: set[ReconcileKey] = set()
        added = dict.fromkeys(keys, 0)
        seen = dict.fromkeys(keys, 0)

        async def handle(key: ReconcileKey) -> bool:
            assert key not in active
            active.add(key)
            seen[key] = added[key]
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            active.discard(key)
            return True

        tasks = [asyncio.create_task(queue.run_worker(handle)) for _ in range(workers)]
        for _ in range(40):
            key = chance.choice(keys)
            added[key] += 1
            queue.add(key, chance.choice([0, 0, 0.001]))
            if chance.random() < 0.3:
                await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(60):
                while seen != added or active:
                    await asyncio.sleep(0.001)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        assert seen == added

    asyncio.run(play())


@pytest.mark.parametrize(
    ("key", "lane"), [(ReconcileKey("runs", "a"), "main"), (ReconcileKey("sources", "a"), "sources")]
)
def test_slow_sources_have_a_separate_queue(key, lane):
    lanes = Queues(Clock())
    lanes.add(key)
    assert getattr(lanes, lane).depth == 1
    assert lanes.main.depth + lanes.sources.depth == 1
