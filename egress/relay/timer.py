"""One thread that rings many alarms. Called by egress.relay.deadline.

A timer of the standard library is a thread of its own, and to start one takes longer than to read a short
listing.
"""

import heapq
import itertools
import threading
import time
from collections.abc import Callable

IDLE_SECONDS = 60.0
"""After which the thread ends where no alarm is set."""
_SPARE = 64


class Alarms:
    """Alarms by number; the thread begins with the first one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._rings: dict[int, Callable[[], None]] = {}
        self._due: list[tuple[float, int]] = []
        self._numbers = itertools.count()
        self._running = False

    def set(self, at: float, ring: Callable[[], None]) -> int:
        """Calls `ring` at the monotonic second `at`, in the thread; it must neither wait nor raise.

        Gives the number by which the alarm is dropped.
        """
        with self._changed:
            number = next(self._numbers)
            sooner = not self._due or at < self._due[0][0]
            self._rings[number] = ring
            heapq.heappush(self._due, (at, number))
            if not self._running:
                self._running = True
                threading.Thread(target=self._work, daemon=True, name="alarms").start()
            elif sooner:
                self._changed.notify()
            return number

    def drop(self, number: int) -> None:
        """The alarm does not ring any more; it may just be ringing."""
        with self._changed:
            self._rings.pop(number, None)
            if len(self._due) > 2 * len(self._rings) + _SPARE:
                self._due = [one for one in self._due if one[1] in self._rings]
                heapq.heapify(self._due)

    def _work(self) -> None:
        while True:
            with self._changed:
                ring = self._next()
                if ring is None:
                    self._running = False
                    return
            ring()

    def _next(self) -> Callable[[], None] | None:
        """The next ring, when it is time; None where there was none for long."""
        while True:
            while self._due and self._due[0][1] not in self._rings:
                heapq.heappop(self._due)
            if not self._due:
                if not self._changed.wait(IDLE_SECONDS) and not self._due:
                    return None
                continue
            at, number = self._due[0]
            left = at - time.monotonic()
            if left <= 0:
                return self._rings.pop(number)
            self._changed.wait(left)
