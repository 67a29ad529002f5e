"""Pauses around the calls of a client: bounded, repeatable, and no call changes its result."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from types import ModuleType

import pytest

from tests.cluster.delays import (
    MAX_PAUSE_SECONDS,
    METHODS,
    SHARE_OF_CALLS,
    delay_calls,
    delay_kopf,
    delay_watch,
)

CALLS = 200


def new_client(steps: list[object]) -> type:
    """Return the class of a client that records its calls."""

    class Client:
        async def call(self, number: int) -> int:
            steps.append("call")
            if number < 0:
                raise ValueError(number)
            return number

        get = list = create = patch = delete = call

    return Client


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Calls and pauses, in seconds, in their order; no pause lasts."""
    found: list[object] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return found


async def test_some_calls_begin_or_end_late_and_return_their_result(steps: list[object]) -> None:
    client = new_client(steps)
    delay_calls(client, 7)
    for method in METHODS:
        assert [await getattr(client(), method)(number) for number in range(CALLS)] == list(range(CALLS))
    pauses = [step for step in steps if isinstance(step, float)]
    assert all(0 <= seconds <= MAX_PAUSE_SECONDS for seconds in pauses)
    assert abs(len(pauses) / (2 * CALLS * len(METHODS)) - SHARE_OF_CALLS) < 0.1


async def test_an_error_ends_late_too(steps: list[object]) -> None:
    client = new_client(steps)
    delay_calls(client, 7)
    for _ in range(CALLS):
        with pytest.raises(ValueError, match="-1"):
            await client().create(-1)
    after = [second for first, second in pairwise(steps) if first == "call"]
    assert any(isinstance(step, float) for step in after)


async def test_equal_seeds_give_equal_pauses(steps: list[object]) -> None:
    runs = []
    for seed in (1, 1, 2):
        client = new_client(steps)
        delay_calls(client, seed)
        for number in range(CALLS):
            await client().patch(number)
        runs.append(tuple(steps))
        steps.clear()
    assert runs[0] == runs[1] != runs[2]


def share_of_pauses(steps: list[object]) -> float:
    """Return the pauses for each of CALLS events; each pause is bounded."""
    pauses = [step for step in steps if isinstance(step, float)]
    assert all(0 <= seconds <= MAX_PAUSE_SECONDS for seconds in pauses)
    return len(pauses) / CALLS


async def test_some_events_of_a_watch_come_late_and_in_order(steps: list[object]) -> None:
    class Client:
        async def watch(self, count: int) -> AsyncIterator[int]:
            for number in range(count):
                yield number

    delay_watch(Client, 7)
    assert [number async for number in Client().watch(CALLS)] == list(range(CALLS))
    assert abs(share_of_pauses(steps) - SHARE_OF_CALLS) < 0.1


async def test_some_events_of_kopf_are_handled_late(steps: list[object]) -> None:
    handled: list[tuple[str, int]] = []

    def make_handler(kind: str) -> object:
        async def handle(event: int, **_: object) -> None:
            handled.append((kind, event))

        return handle

    module = ModuleType("kopf_watch")
    module._handler = make_handler  # type: ignore[attr-defined]
    delay_kopf(module, 7)
    handler = module._handler("runs")
    for number in range(CALLS):
        await handler(event=number, logger=None)
    assert handled == [("runs", number) for number in range(CALLS)]
    assert abs(share_of_pauses(steps) - SHARE_OF_CALLS) < 0.1
