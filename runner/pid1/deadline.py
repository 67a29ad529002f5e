"""A deadline that others may bring forward, waking who waits. Shared by the workers of process 1."""

from __future__ import annotations

import threading
import time


class Until:
    """Monotonic seconds until which a worker keeps trying."""

    def __init__(self, at: float = float("inf")) -> None:
        self._at = at
        self._changed = threading.Condition()

    @property
    def at(self) -> float:
        """The deadline, on the monotonic clock."""
        return self._at

    def by(self, at: float) -> None:
        """Brings the deadline forward to `at`; never puts it off."""
        with self._changed:
            self._at = min(self._at, at)
            self._changed.notify_all()

    def left(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self._at - time.monotonic())

    def pause(self, seconds: float) -> bool:
        """Waits `seconds`, at most to the deadline; True where that has passed."""
        wake = time.monotonic() + seconds
        with self._changed:
            while True:
                time_ = time.monotonic()
                if self._at <= time_:
                    return True
                if wake <= time_:
                    return False
                self._changed.wait(min(wake, self._at) - time_)
