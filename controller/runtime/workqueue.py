"""A work queue that never works at one key twice at once.

Keys are added by watch events, the resync and reconciles themselves; workers
take them in the order in which they became ready. A key added while it waits is
one piece of work; a key added while it is worked at comes again afterwards.
"""

import asyncio
import heapq
import itertools
import random
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

BACKOFF_BASE = 0.05
BACKOFF_MAX = 30.0
SLACK = 64
"""Entries for later that may be stale whatever else is planned."""


class Key(NamedTuple):
    """What is to be looked at: a kind of work and the name of an object."""

    plural: str
    name: str


def backoff(failures: int, draw: Callable[[], float] = random.random) -> float:
    """Seconds to wait after that many failures in a row: doubling, at most 30, half of it by chance."""
    whole = min(BACKOFF_MAX, BACKOFF_BASE * 2.0 ** min(failures - 1, 30))
    return whole / 2 + draw() * whole / 2


class WorkQueue:
    """Serial per key, coalescing, with delayed keys and back-off. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ready: dict[Key, float] = {}
        self._active: set[Key] = set()
        self._again: dict[Key, float] = {}
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._ticket = itertools.count()
        self._failures: dict[Key, int] = {}
        self._idle: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0

    def add(self, key: Key, after: float = 0.0) -> None:
        """Asks for a look at `key`, now or in `after` seconds. Of several, the earliest counts."""
        now = self._clock()
        if after > 0:
            due = now + after
            if key not in self._due or due < self._due[key]:
                self._due[key] = due
                heapq.heappush(self._heap, (due, next(self._ticket), key))
                self._sweep()
                if self._idle:
                    self._arm()
            return
        if key in self._active:
            self._again.setdefault(key, now)
        elif key not in self._ready:
            self._ready[key] = now
            self._wake()

    def forget(self, key: Key) -> None:
        """Drops what is planned for `key` later: its object is gone."""
        self._due.pop(key, None)
        self._failures.pop(key, None)
        self._sweep()

    async def take(self) -> Key:
        """The next ready key, which is then active until `done`."""
        while True:
            self._promote()
            for key in self._ready:
                del self._ready[key]
                self._active.add(key)
                if self._ready:
                    self._wake()
                return key
            self._arm()
            woken = asyncio.get_running_loop().create_future()
            self._idle.append(woken)
            try:
                await woken
            except asyncio.CancelledError:
                if woken in self._idle:
                    self._idle.remove(woken)
                else:
                    # It was woken for something that another one has to do now.
                    self._wake()
                raise

    def done(self, key: Key, failed: bool = False) -> None:
        """Ends the work at `key`; after a failure it comes again with back-off."""
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
        """One idle worker looks again; it wakes the next one if there is more."""
        while self._idle:
            woken = self._idle.popleft()
            if not woken.done():
                woken.set_result(None)
                return

    def _arm(self) -> None:
        """One timer for all who wait: each with its own, all of them would look at every delayed key."""
        if not self._heap or (self._timer is not None and self._timer_due <= self._heap[0][0]):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = self._heap[0][0]
        wait = max(0.0, self._timer_due - self._clock())
        self._timer = asyncio.get_running_loop().call_later(wait, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._promote()
        if self._idle:
            self._arm()

    def _sweep(self) -> None:
        """Drops what was forgotten, or is due sooner by now: a Run's deadline is an hour and more away."""
        if len(self._heap) <= 2 * len(self._due) + SLACK:
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
    def planned(self) -> int:
        """How many entries for later are kept, stale ones too."""
        return len(self._heap)

    @property
    def depth(self) -> int:
        """How many keys are ready."""
        return len(self._ready)

    def oldest_ready(self) -> float:
        """For how many seconds the oldest ready key has been waiting; 0 where none is."""
        self._promote()
        return self._clock() - min(self._ready.values()) if self._ready else 0.0

    async def work(self, handle: Callable[[Key], Awaitable[bool]]) -> None:
        """One worker, until it is cancelled. `handle` says whether it succeeded and must not raise."""
        while True:
            key = await self.take()
            failed = True
            try:
                failed = not await handle(key)
            finally:
                self.done(key, failed)
