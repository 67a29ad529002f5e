"""Timers that share one thread. Called by egress.relay.deadline.

Each threading.Timer starts a thread, which takes longer than a short ref listing.
"""

import heapq
import itertools
import threading
import time
from collections.abc import Callable

IDLE_SECONDS = 60.0
"""The thread exits after this time without a timer."""
_MAX_CANCELED_SPARE = 64


class TimerThread:
    """Timers by id; the thread starts with the first one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._heap: list[tuple[float, int]] = []
        self._ids = itertools.count()
        self._running = False

    def schedule(self, at: float, callback: Callable[[], None]) -> int:
        """Call `callback` in the thread at the monotonic second `at`; it must neither block nor raise.

        Return the timer's id, for `cancel`.
        """
        with self._changed:
            timer_id = next(self._ids)
            earliest = not self._heap or at < self._heap[0][0]
            self._callbacks[timer_id] = callback
            heapq.heappush(self._heap, (at, timer_id))
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, daemon=True, name="timers").start()
            elif earliest:
                self._changed.notify()
            return timer_id

    def cancel(self, timer_id: int) -> None:
        """Cancel a timer; its callback may be running already."""
        with self._changed:
            self._callbacks.pop(timer_id, None)
            if len(self._heap) > 2 * len(self._callbacks) + _MAX_CANCELED_SPARE:
                self._heap = [entry for entry in self._heap if entry[1] in self._callbacks]
                heapq.heapify(self._heap)

    def _run(self) -> None:
        while True:
            with self._changed:
                callback = self._wait_for_next()
                if callback is None:
                    self._running = False
                    return
            callback()

    def _wait_for_next(self) -> Callable[[], None] | None:
        """Wait for the next due callback; return None after IDLE_SECONDS without a timer."""
        while True:
            while self._heap and self._heap[0][1] not in self._callbacks:
                heapq.heappop(self._heap)
            if not self._heap:
                if not self._changed.wait(IDLE_SECONDS) and not self._heap:
                    return None
                continue
            at, timer_id = self._heap[0]
            seconds = at - time.monotonic()
            if seconds <= 0:
                return self._callbacks.pop(timer_id)
            self._changed.wait(seconds)
