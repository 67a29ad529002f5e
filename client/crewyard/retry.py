"""Back-off and retry limits of calls and streams. Pure; used by both clients."""

import random
import time
from collections.abc import Callable

MAX_ATTEMPTS = 6
MAX_PAUSE_SECONDS = 30.0
MAX_RECONNECTS = 20
"""Consecutive connections of a stream that deliver no message and end early."""
STABLE_SECONDS = 10.0
"""A connection that lasts this long counts as working, even without messages: proxies cut idle streams."""


def pause(failures: int, retry_after: float | None, draw: Callable[[], float] = random.random) -> float:
    """Return the seconds to wait after `failures` consecutive failures.

    `retry_after` wins, up to 120 s; otherwise exponential back-off with jitter over its upper half.
    """
    if retry_after is not None:
        return min(max(retry_after, 0.0), 120.0)
    longest = min(MAX_PAUSE_SECONDS, 0.25 * 2.0 ** min(failures, 20))
    return longest / 2 + draw() * longest / 2


class ReconnectPolicy:
    """Limits how often a stream reconnects. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._opened: float | None = None

    @property
    def exhausted(self) -> bool:
        """Whether too many consecutive connections delivered nothing."""
        return self._failures >= MAX_RECONNECTS

    def record_open(self) -> None:
        """Record that the service started to respond."""
        self._opened = self._clock()

    def record_message(self) -> None:
        """Record that a message arrived; resets the failure count."""
        self._failures = 0

    def record_end(self, retry_after: float | None, silent: bool = False) -> float:
        """Record that the connection ended or failed, and return the seconds to wait before reconnecting.

        `silent`: it timed out without data, so its age does not count as working.
        """
        if not silent and self._opened is not None and self._clock() - self._opened >= STABLE_SECONDS:
            self._failures = 0
        self._opened = None
        self._failures += 1
        return pause(self._failures, retry_after)
