"""Events of one run leave the event loop to others while they are parsed."""

import asyncio
from datetime import UTC, datetime

import pytest

from api.internal import event_validation
from api.internal.context import PodApiError
from api.internal.event_validation import MAX_EVENTS_PER_CALL, items_of, parse_event
from api.internal.events import EVENTS_PER_TURN, parse_in_turns

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)


def body(count: int) -> dict:
    items = [{"seq": n, "type": "log", "data": {"message": f"line {n}"}} for n in range(1, count + 1)]
    return {"events": items}


async def test_others_run_between_the_events_of_a_full_call(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed, seen = 0, []
    parse_event = event_validation.parse_event

    def counted(*arguments):
        nonlocal parsed
        parsed += 1
        return parse_event(*arguments)

    monkeypatch.setattr(event_validation, "parse_event", counted)
    whole = asyncio.create_task(parse_in_turns("run-a", body(MAX_EVENTS_PER_CALL), NOW, 65536))
    while not whole.done():
        await asyncio.sleep(0)
        seen.append(parsed)
    steps = [after - before for before, after in zip([0, *seen], seen, strict=False)]
    assert max(steps) <= EVENTS_PER_TURN and parsed == MAX_EVENTS_PER_CALL
    assert [event.seq for event in whole.result()] == list(range(1, MAX_EVENTS_PER_CALL + 1))


@pytest.mark.parametrize("count", [0, 1, EVENTS_PER_TURN, EVENTS_PER_TURN + 1, MAX_EVENTS_PER_CALL])
async def test_turns_change_nothing_about_the_events(count: int) -> None:
    at_once = [parse_event("run-a", item, NOW, 65536) for item in items_of(body(count))]
    assert await parse_in_turns("run-a", body(count), NOW, 65536) == at_once


async def test_too_many_events_are_refused() -> None:
    with pytest.raises(PodApiError):
        await parse_in_turns("run-a", body(MAX_EVENTS_PER_CALL + 1), NOW, 65536)
