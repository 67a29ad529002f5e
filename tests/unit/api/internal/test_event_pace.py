"""A project above its rate of events waits for its responses, and no other one does."""

import asyncio
from types import SimpleNamespace

import pytest

from api.internal import event_pace
from api.internal.event_pace import MAX_DELAY_SECONDS, EventPace
from api.store.store import Store
from crds.installation_limits import InstallationLimits
from tests.unit.api.internal.conftest import Mint, Pods
from tests.unit.api.internal.test_tenant_storage import claimed, emit, other_run


def test_a_project_within_its_rate_never_waits() -> None:
    pace = EventPace(1000)
    assert [pace.delay("a", 100, 10 + 0.1 * second) for second in range(100)] == [0.0] * 100


def test_a_burst_of_a_second_is_accepted_and_what_follows_waits() -> None:
    pace = EventPace(1000)
    assert [pace.delay("a", 500, 10.0) for _ in range(2)] == [0.0, 0.0]
    assert pace.delay("a", 100, 10.0) == pytest.approx(0.1)
    # Each project has a rate of its own.
    assert pace.delay("b", 500, 10.0) == 0.0


def test_two_runners_that_wait_share_the_rate() -> None:
    pace, now, sent = EventPace(1000), 10.0, 0
    # Both send the next call as soon as their response arrives.
    due = [now, now]
    while now < 30:
        runner = due.index(min(due))
        now = due[runner]
        due[runner] = now + pace.delay("a", 100, now)
        sent += 100
    assert sent == pytest.approx(21 * 1000, abs=300)


def test_the_wait_is_bounded_for_many_runners_and_ends() -> None:
    pace = EventPace(500)
    assert max(pace.delay("a", 500, 10.0) for _ in range(100)) == MAX_DELAY_SECONDS
    assert pace.delay("a", 1, 11.5) == 0.0


def test_the_oldest_projects_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_pace, "MAX_PROJECTS", 2)
    pace = EventPace(1000)
    for project in ("a", "b", "a", "c"):
        pace.delay(project, 1000, 10.0)
    # a was used after b: b is gone, and has its burst again.
    assert (pace.delay("a", 100, 10.0), pace.delay("b", 100, 10.0)) == (MAX_DELAY_SECONDS, 0.0)


@pytest.mark.parametrize("limits", [InstallationLimits(events_per_second=500)])
async def test_the_response_to_a_runner_waits(
    pods: Pods, store: Store, bearer: Mint, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    sleep = asyncio.sleep

    async def recorded(seconds: float) -> None:
        waited.append(seconds)
        await sleep(0)

    run, other = await claimed(pods, store, bearer), await other_run(pods, store, bearer)
    monkeypatch.setattr("api.internal.events.asyncio.sleep", recorded)
    # All calls come at the same time, however long each takes.
    monkeypatch.setattr("api.internal.events.time", SimpleNamespace(monotonic=lambda: 10.0))
    for first in (1, 501, 1001):
        await emit(pods, run, bearer(run), first, 500)
    assert max(waited) == pytest.approx(MAX_DELAY_SECONDS, abs=0.01)
    waited.clear()
    await emit(pods, other, bearer(other), 1, 1)
    assert set(waited) <= {0.0}
