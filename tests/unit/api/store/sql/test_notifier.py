"""Rings: none is missed by whoever took a mark before it, also where it is no longer remembered."""

import asyncio

import pytest

from api.store.sql import notifier
from api.store.sql.notifier import Notifier


def test_a_ring_that_is_forgotten_is_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "MAX_REMEMBERED_KEYS", 3)
    rings = Notifier()
    rings.notify("before")
    mark = rings.mark
    assert not rings.changed_since("run-a", mark)
    rings.notify("run-a")
    for number in range(3):
        rings.notify(f"run-{number}")
    assert rings.changed_since("run-a", mark)
    # Who looks again from now on has missed nothing.
    assert not rings.changed_since("run-a", rings.mark)


async def test_who_waits_from_before_what_is_forgotten_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "MAX_REMEMBERED_KEYS", 3)
    rings = Notifier()
    mark = rings.mark
    for number in range(5):
        rings.notify(f"run-{number}")
    await asyncio.wait_for(rings.wait("run-0", mark, 30), 25)
