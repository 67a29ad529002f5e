"""Durations of calls of models. Used by the adapters whose framework says when a call starts."""

from __future__ import annotations

from time import monotonic_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_OPEN_CALLS = 10_000  # calls without an end; beyond that the oldest is evicted
_NANOSECONDS_PER_MS = 1_000_000


class CallTimes:
    """The calls that have started and not ended, by any key."""

    def __init__(self, clock: Callable[[], int] = monotonic_ns) -> None:
        self._clock = clock
        self._began: dict[object, int] = {}

    def begin(self, call: object) -> None:
        """Start a call now, or again."""
        self._began[call] = self._clock()
        if len(self._began) > MAX_OPEN_CALLS:
            self._began.pop(next(iter(self._began)), None)

    def end(self, call: object) -> dict[str, object]:
        """End a call, and return its duration as a field of its usage event; none if its start is unknown."""
        began = self._began.pop(call, None)
        return {} if began is None else {"duration_ms": (self._clock() - began) // _NANOSECONDS_PER_MS}
