"""Fixed-window counters in process memory. Called by `api.ratelimit.counters`.

Same semantics as the memory storage of `limits`: a window starts with its first request. The library
scans all windows at every request, in a task of its own; this class does so once a minute.
"""

import time
from collections.abc import Callable, Hashable

MAX_WINDOWS = 100_000
"""Open windows, about 20 MB; beyond it the oldest windows are evicted."""
SWEEP_SECONDS = 60.0


class _Window:
    __slots__ = ("began", "count", "ends")

    def __init__(self, began: float, seconds: float) -> None:
        self.began, self.ends = began, began + seconds
        self.count = 0

    def is_open(self, now: float) -> bool:
        """Return whether `now` is within it; a clock that was set back is before it."""
        return self.began <= now < self.ends


class FixedWindows:
    """Open windows by name. `clock` returns epoch seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._windows: dict[Hashable, _Window] = {}
        self._sweep_at = 0.0

    def hit(self, name: Hashable, seconds: float) -> tuple[int, float]:
        """Count a request in the named window, or in a new one of `seconds`.

        Return its count, and its end in epoch seconds.
        """
        now = self._clock()
        window = self._windows.get(name)
        if window is None or not window.is_open(now):
            # Remove and insert: the order of the dict is the order in which windows started.
            self._windows.pop(name, None)
            self._sweep(now)
            window = self._windows[name] = _Window(now, seconds)
        window.count += 1
        return window.count, window.ends

    def peek(self, name: Hashable) -> tuple[int, float]:
        """Return the same without counting; 0 and now if there is no such window."""
        now = self._clock()
        window = self._windows.get(name)
        return (window.count, window.ends) if window is not None and window.is_open(now) else (0, now)

    def __len__(self) -> int:
        return len(self._windows)

    def _sweep(self, now: float) -> None:
        if now >= self._sweep_at:
            self._windows = {name: window for name, window in self._windows.items() if window.is_open(now)}
            self._sweep_at = now + SWEEP_SECONDS
        while len(self._windows) >= MAX_WINDOWS:
            del self._windows[next(iter(self._windows))]
