"""A deadline that other threads may bring forward, waking waiters. Shared by the workers of process 1."""

from __future__ import annotations

import threading
import time


class Deadline:
    """The monotonic time until which a worker retries."""

    def __init__(self, at: float = float("inf")) -> None:
        self._at = at
        self._changed = threading.Condition()

    @property
    def at(self) -> float:
        """The deadline, on the monotonic clock."""
        return self._at

    def bring_forward(self, at: float) -> None:
        """Bring the deadline forward to `at`; never postpone it."""
        with self._changed:
            self._at = min(self._at, at)
            self._changed.notify_all()

    def remaining(self) -> float:
        """Return the remaining seconds, never below 0."""
        return max(0.0, self._at - time.monotonic())

    def pause(self, seconds: float) -> bool:
        """Wait `seconds`, at most until the deadline; return True if the deadline has passed."""
        wake_at = time.monotonic() + seconds
        with self._changed:
            while True:
                now = time.monotonic()
                if self._at <= now:
                    return True
                if wake_at <= now:
                    return False
                self._changed.wait(min(wake_at, self._at) - now)
