"""The bounded queue of the run's events, numbered in order.

`capture`, `upload` and `shutdown` fill it, `sender` empties it.
"""

from __future__ import annotations

import threading
from collections import deque

from runner.pid1.output import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_QUEUED_BYTES = 8 * 1024 * 1024  # a full queue blocks the crew's print until the API acknowledges events
MAX_BATCH_EVENTS = 500
MAX_BATCH_BYTES = 1024 * 1024 - 4096  # the rest is for the frame of the call


class EventQueue:
    """A queue of numbered events; an event stays until it is acknowledged."""

    def __init__(self, max_bytes: int = MAX_QUEUED_BYTES) -> None:
        self._max_bytes = max_bytes
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._last = 0
        self._closed = False
        self._changed = threading.Condition()

    @property
    def last_seq(self) -> int:
        """The highest event number so far."""
        return self._last

    def put(self, time: str, events: Sequence[tuple[str, str]]) -> None:
        """Append (type, data as JSON) pairs; block while the queue is full. After `close`, drop them."""
        with self._changed:
            for kind, data in events:
                while self._bytes >= self._max_bytes and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                encoded = encode.event(self._last + 1, kind, time, data)
                self._last += 1
                self._waiting.append((self._last, encoded))
                self._bytes += len(encoded)
            self._changed.notify_all()

    def batch(self, max_events: int = MAX_BATCH_EVENTS) -> list[tuple[int, bytes]]:
        """Wait for events and return the first ones without removing them; [] when closed and empty."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            batch: list[tuple[int, bytes]] = []
            size = 0
            for number, encoded in self._waiting:
                size += len(encoded) + 2
                if batch and (len(batch) >= max_events or size > MAX_BATCH_BYTES):
                    break
                batch.append((number, encoded))
            return batch

    def acknowledge(self, number: int) -> None:
        """Remove the events up to `number`."""
        with self._changed:
            while self._waiting and self._waiting[0][0] <= number:
                self._bytes -= len(self._waiting.popleft()[1])
            self._changed.notify_all()

    def replace(self, number: int, kind: str, time: str, data: str) -> None:
        """Replace the first event, if its number still is `number`."""
        with self._changed:
            if self._waiting and self._waiting[0][0] == number:
                encoded = encode.event(number, kind, time, data)
                self._bytes += len(encoded) - len(self._waiting[0][1])
                self._waiting[0] = (number, encoded)

    def close(self) -> None:
        """Close the queue: `batch` returns [] once all events are acknowledged, `put` no longer blocks."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
