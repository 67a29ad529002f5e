"""Rings: none is missed by whoever took a mark before it, also where it is no longer remembered."""

import asyncio

import pytest

from api.store.sql import notifier
from api.store.sql.notifier import Signals


def test_a_ring_that_is_forgotten_is_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "REMEMBERED", 3)
    rings = Signals()
    rings.ring("before")
    mark = rings.mark
    assert not rings.since("run-a", mark)
    rings.ring("run-a")
    for number in range(3):
        rings.ring(f"run-{number}")
    assert rings.since("run-a", mark)
    # Who looks again from now on has missed nothing.
    assert not rings.since("run-a", rings.mark)


async def test_who_waits_from_before_what_is_forgotten_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "REMEMBERED", 3)
    rings = Signals()
    mark = rings.mark
    for number in range(5):
        rings.ring(f"run-{number}")
    await asyncio.wait_for(rings.wait("run-0", mark, 30), 25)
