"""Tests of the notifier: a waiter with an older mark misses no notification, even an evicted one."""

import asyncio

import pytest

from api.store.sql import notifier
from api.store.sql.notifier import Notifier


def test_evicted_key_counts_as_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "MAX_REMEMBERED_KEYS", 3)
    rings = Notifier()
    rings.notify("before")
    mark = rings.mark
    assert not rings.changed_since("run-a", mark)
    rings.notify("run-a")
    for number in range(3):
        rings.notify(f"run-{number}")
    assert rings.changed_since("run-a", mark)
    # A reader that checks from now on has missed nothing.
    assert not rings.changed_since("run-a", rings.mark)


async def test_wait_with_mark_before_eviction_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "MAX_REMEMBERED_KEYS", 3)
    rings = Notifier()
    mark = rings.mark
    for number in range(5):
        rings.notify(f"run-{number}")
    await asyncio.wait_for(rings.wait("run-0", mark, 30), 25)
