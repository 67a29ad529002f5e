"""Tests of the notifier: a waiter with an older mark misses no notification, even an evicted one."""

import asyncio

import asyncpg
import pytest

from api.store.sql import notifier
from api.store.sql.notifier import Notifier
from api.store.sql.postgres.notifications import NotificationRelay


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


class LossyConnection:
    """A connection of which the first statement breaks, and the third is cancelled."""

    def __init__(self):
        self.batches = []

    async def execute(self, _statement, _channel, batch):
        self.batches.append([payload.split(" ", 1)[1] for payload in batch])
        if len(self.batches) != 2:
            raise OSError if len(self.batches) == 1 else asyncio.CancelledError


async def test_notifications_of_a_broken_connection_are_sent_again():
    relay, connection = NotificationRelay("postgresql://user@localhost/index", "crews"), LossyConnection()
    relay.send("runs", "one")
    with pytest.raises(OSError):
        await relay._send_pending(connection)
    relay.send("runs", "two")
    relay.send("runs", "one")
    sending = asyncio.create_task(relay._send_pending(connection))
    while len(connection.batches) < 2:
        await asyncio.sleep(0)
    relay.send("runs", "three")
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert connection.batches == [["runs one"], ["runs one", "runs two"], ["runs three"]]


async def test_notifications_continue_after_any_error(monkeypatch):
    errors, connected = [ValueError, asyncpg.InternalClientError, OSError], asyncio.Event()

    async def connect(*_arguments, **_options):
        if errors:
            raise errors.pop()("unexpected")
        connected.set()
        raise OSError

    monkeypatch.setattr(asyncpg, "connect", connect)
    relay = NotificationRelay("postgresql://user@localhost/index", "crews")
    relay.start()
    await asyncio.wait_for(connected.wait(), 60)
    await relay.close()
