"""Requests counted in fixed windows, in this process's memory. Called by `api.ratelimit.counters`.

As the library's own memory does it: a window begins with its first request. That one goes through all
windows there are at every request, in a task of its own; here one request a minute does.
"""

import time
from collections.abc import Callable, Hashable

MOST = 100_000
"""Windows that are open at once: about 20 MB. Beyond it those that began first are forgotten."""
SWEEP_SECONDS = 60.0


class _Window:
    __slots__ = ("count", "ends")

    def __init__(self, ends: float) -> None:
        self.count = 0
        self.ends = ends


class Windows:
    """Open windows by their names. `clock` gives epoch seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._open: dict[Hashable, _Window] = {}
        self._sweep_at = 0.0

    def hit(self, name: Hashable, seconds: float) -> tuple[int, float]:
        """Counts one in the window of that name, or in a new one of `seconds`.

        Gives how many it has had, and when it ends.
        """
        now = self._clock()
        found = self._open.get(name)
        if found is None or found.ends <= now:
            # Taken out and put in again, so that the first ones are those that began first.
            self._open.pop(name, None)
            self._sweep(now)
            found = self._open[name] = _Window(now + seconds)
        found.count += 1
        return found.count, found.ends

    def look(self, name: Hashable) -> tuple[int, float]:
        """The same without counting; nothing, and now, where there is no such window."""
        now = self._clock()
        found = self._open.get(name)
        return (0, now) if found is None or found.ends <= now else (found.count, found.ends)

    def __len__(self) -> int:
        return len(self._open)

    def _sweep(self, now: float) -> None:
        if now >= self._sweep_at:
            self._open = {name: one for name, one in self._open.items() if one.ends > now}
            self._sweep_at = now + SWEEP_SECONDS
        while len(self._open) >= MOST:
            del self._open[next(iter(self._open))]
