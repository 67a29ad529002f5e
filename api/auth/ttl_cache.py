"""TTL cache with at most one load per key at a time.

Called by `api.auth.kubernetes`. Valid and invalid results are stored apart, so a flood of
invalid keys never evicts valid ones.
"""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from api.store.shared_tasks import SharedTasks

T = TypeVar("T")


class TtlCache(Generic[T]):
    """Results by key, None being invalid; holds at most `size` valid and `size` invalid results."""

    def __init__(self, seconds: float, size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._size, self._clock = seconds, size, clock
        self._valid: OrderedDict[str, tuple[float, T]] = OrderedDict()
        self._invalid: OrderedDict[str, tuple[float, None]] = OrderedDict()
        self._loading: SharedTasks[T | None] = SharedTasks()

    def is_cached(self, key: str) -> bool:
        """Return whether `get` needs no new load."""
        return self._fresh_entry(key) is not None or key in self._loading

    def was_valid(self, key: str) -> bool:
        """Return whether the key was valid at any time that the cache still holds."""
        return key in self._valid

    async def get(self, key: str, load: Callable[[], Awaitable[T | None]]) -> T | None:
        """Return the cached result, or that of `load`, shared by concurrent callers.

        Cancelling one caller does not cancel the load for the others. Raises the errors of `load`,
        which are not cached.
        """
        entry = self._fresh_entry(key)
        if entry is not None:
            return entry[1]
        return await self._loading.run(key, lambda: self._load(key, load))

    async def _load(self, key: str, load: Callable[[], Awaitable[T | None]]) -> T | None:
        started = self._clock()
        value = await load()
        # The TTL counts from the start of the load: a change during the load is visible in time.
        if value is None:
            _put(self._invalid, key, (started, None), self._size)
        else:
            _put(self._valid, key, (started, value), self._size)
        return value

    def _fresh_entry(self, key: str) -> tuple[float, T] | tuple[float, None] | None:
        for entries in (self._valid, self._invalid):
            entry = entries.get(key)
            if entry is not None and self._clock() - entry[0] < self._seconds:
                return entry
        return None


def _put(entries: OrderedDict[str, T], key: str, value: T, size: int) -> None:
    entries[key] = value
    entries.move_to_end(key)
    if len(entries) > size:
        entries.popitem(last=False)
