"""The run's events between the pipes and the facade: numbered, in order, bounded. Filled by `intake`,
`upload`
and `finish`, emptied by `sender`."""

from __future__ import annotations

import threading
from collections import deque

from runner.pid1.output import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

HOLDS = 8 * 1024 * 1024  # bytes; full means that the crew's print waits until the facade has taken some
BATCH_EVENTS = 500
BATCH_BYTES = 1024 * 1024 - 4096  # the call's frame fits into the rest


class Events:
    """Events by their numbers; an event stays here until it is acknowledged."""

    def __init__(self, holds: int = HOLDS) -> None:
        self._holds = holds
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._last = 0
        self._closed = False
        self._changed = threading.Condition()

    @property
    def last(self) -> int:
        """The greatest number given so far."""
        return self._last

    def put(self, time: str, events: Sequence[tuple[str, str]]) -> None:
        """Appends (type, data as JSON) pairs; waits while the queue is full. After `close`, drops."""
        with self._changed:
            for kind, data in events:
                while self._bytes >= self._holds and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                encoded = encode.event(self._last + 1, kind, time, data)
                self._last += 1
                self._waiting.append((self._last, encoded))
                self._bytes += len(encoded)
            self._changed.notify_all()

    def batch(self, most: int = BATCH_EVENTS) -> list[tuple[int, bytes]]:
        """Waits for events and gives the first ones, without removing them; [] when closed and empty."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            taken: list[tuple[int, bytes]] = []
            size = 0
            for number, encoded in self._waiting:
                size += len(encoded) + 2
                if taken and (len(taken) >= most or size > BATCH_BYTES):
                    break
                taken.append((number, encoded))
            return taken

    def acknowledge(self, number: int) -> None:
        """Drops the events up to `number`."""
        with self._changed:
            while self._waiting and self._waiting[0][0] <= number:
                self._bytes -= len(self._waiting.popleft()[1])
            self._changed.notify_all()

    def replace(self, number: int, kind: str, time: str, data: str) -> None:
        """Puts another event in the place of the first one, if that still is `number`."""
        with self._changed:
            if self._waiting and self._waiting[0][0] == number:
                encoded = encode.event(number, kind, time, data)
                self._bytes += len(encoded) - len(self._waiting[0][1])
                self._waiting[0] = (number, encoded)

    def close(self) -> None:
        """No event will follow: `batch` ends when what waits is acknowledged, `put` no longer waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
