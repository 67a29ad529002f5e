"""Work queue that never reconciles one key twice in parallel.

Watch events, the resync and reconciles add keys; workers get them in the order in which they
became ready. Keys of listed objects have a lower priority: after a start thousands of them are ready,
and a new Run must not wait for all. A key added while it waits is coalesced; a key added while it is
active is queued again afterwards. Called by `controller.runtime.queues`.
"""

import asyncio
import heapq
import itertools
import random
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from controller.backoff import backoff_seconds

BACKOFF_BASE_SECONDS = 0.05
BACKOFF_MAX_SECONDS = 30.0
LISTED_SHARE = 4
"""One of so many keys is that of a listed object, if both kinds are ready."""
MAX_STALE_ENTRIES = 64
"""Stale delayed entries that are tolerated regardless of the heap size."""


class ReconcileKey(NamedTuple):
    """Kind of work and name of an object."""

    plural: str
    name: str


def backoff(failures: int, draw: Callable[[], float] = random.random) -> float:
    """Return seconds to wait after that many consecutive failures: doubling, at most 30, half random."""
    whole = backoff_seconds(BACKOFF_BASE_SECONDS, failures, BACKOFF_MAX_SECONDS)
    return whole / 2 + draw() * whole / 2


class WorkQueue:
    """Serial per key, coalescing, with delayed keys and back-off. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ready: dict[ReconcileKey, float] = {}
        self._listed: dict[ReconcileKey, float] = {}
        self._turn = itertools.count(1)
        self._active: set[ReconcileKey] = set()
        self._again: dict[ReconcileKey, float] = {}
        self._due: dict[ReconcileKey, float] = {}
        self._heap: list[tuple[float, int, ReconcileKey]] = []
        self._ticket = itertools.count()
        self._failures: dict[ReconcileKey, int] = {}
        self._idle: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0

    def add(self, key: ReconcileKey, after: float = 0.0, listed: bool = False) -> None:
        """Enqueue `key` now or in `after` seconds; the earliest of several delays counts.

        `listed`: with a lower priority, because a list shows its object, and no event.
        """
        now = self._clock()
        if after > 0:
            due = now + after
            if key not in self._due or due < self._due[key]:
                self._due[key] = due
                heapq.heappush(self._heap, (due, next(self._ticket), key))
                self._drop_stale()
                if self._idle:
                    self._arm_timer()
            return
        if key in self._active:
            self._again.setdefault(key, now)
        elif key not in self._ready and not (listed and key in self._listed):
            lane = self._listed if listed else self._ready
            lane[key] = self._listed.pop(key, now)
            self._wake()

    def remove(self, key: ReconcileKey) -> None:
        """Drop delayed work for `key`, which is active: its object is gone; `done` clears its failures."""
        self._due.pop(key, None)
        self._drop_stale()

    async def get(self) -> ReconcileKey:
        """Return the next ready key; it is active until `done`."""
        while True:
            self._promote()
            if self.depth:
                key = self._take()
                self._active.add(key)
                if self.depth:
                    self._wake()
                return key
            self._arm_timer()
            woken = asyncio.get_running_loop().create_future()
            self._idle.append(woken)
            try:
                await woken
            except asyncio.CancelledError:
                if woken in self._idle:
                    self._idle.remove(woken)
                else:
                    # Woken and cancelled in the same moment: pass the wake-up on.
                    self._wake()
                raise

    def _take(self) -> ReconcileKey:
        """Remove and return the next key; at least one is ready."""
        listed = not self._ready or (bool(self._listed) and next(self._turn) % LISTED_SHARE == 0)
        lane = self._listed if listed else self._ready
        key = next(iter(lane))
        del lane[key]
        return key

    def done(self, key: ReconcileKey, failed: bool = False) -> None:
        """Mark `key` as done; after a failure, queue it again with back-off."""
        self._active.discard(key)
        if key in self._again:
            self._ready[key] = self._again.pop(key)
            self._wake()
        if not failed:
            self._failures.pop(key, None)
            return
        self._failures[key] = self._failures.get(key, 0) + 1
        self.add(key, backoff(self._failures[key]))

    def _wake(self) -> None:
        """Wake one idle worker; it wakes the next one if more keys are ready."""
        while self._idle:
            woken = self._idle.popleft()
            if not woken.done():
                woken.set_result(None)
                return

    def _arm_timer(self) -> None:
        """Arm one timer for all idle workers; with one each, all would wake for every delayed key."""
        if not self._heap or (self._timer is not None and self._timer_due <= self._heap[0][0]):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = self._heap[0][0]
        wait = max(0.0, self._timer_due - self._clock())
        self._timer = asyncio.get_running_loop().call_later(wait, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._promote()
        if self._idle:
            self._arm_timer()

    def _drop_stale(self) -> None:
        """Drop removed and superseded entries: a Run's deadline may be more than an hour away."""
        if len(self._heap) <= 2 * len(self._due) + MAX_STALE_ENTRIES:
            return
        self._heap = [entry for entry in self._heap if self._due.get(entry[2]) == entry[0]]
        heapq.heapify(self._heap)

    def _promote(self) -> None:
        now = self._clock()
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)

    @property
    def scheduled(self) -> int:
        """Number of delayed entries, including stale ones."""
        return len(self._heap)

    @property
    def depth(self) -> int:
        """Number of ready keys."""
        return len(self._ready) + len(self._listed)

    def oldest_ready(self) -> float:
        """Return seconds since the oldest ready key became ready; 0 if none is."""
        self._promote()
        since = min((*self._ready.values(), *self._listed.values()), default=self._clock())
        return self._clock() - since

    async def run_worker(self, handle: Callable[[ReconcileKey], Awaitable[bool]]) -> None:
        """Run one worker until cancelled. `handle` returns whether it succeeded and must not raise."""
        while True:
            key = await self.get()
            failed = True
            try:
                failed = not await handle(key)
            finally:
                self.done(key, failed)
