"""Deadline that shuts down all connections of a relay, active ones included. Called by egress.relay.relay."""

import contextlib
import socket
import threading
import time

from egress.relay.timer import TimerThread

_TIMERS = TimerThread()


class RelayDeadline:
    """Expire `seconds` after `start`: set `expired` and shut down the added connections."""

    def __init__(self, seconds: float) -> None:
        self.expired = False
        self._seconds, self._end = seconds, time.monotonic() + seconds
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._timer_id: int | None = None

    def start(self) -> None:
        """Start the countdown."""
        self._end = time.monotonic() + self._seconds
        self._timer_id = _TIMERS.schedule(self._end, self._expire)

    def stop(self) -> None:
        """Cancel the countdown."""
        if self._timer_id is not None:
            _TIMERS.cancel(self._timer_id)

    def seconds_left(self) -> float:
        """Return the seconds until the deadline; 0 or less after it."""
        return self._end - time.monotonic()

    def add(self, stream: socket.socket) -> None:
        """Add a connection, which is shut down at the deadline. Raises TimeoutError after it."""
        with self._lock:
            if self.expired:
                raise TimeoutError("the deadline of the relay has expired")
            self._open.add(stream)

    def remove(self, stream: socket.socket) -> None:
        """Remove a connection that has ended."""
        with self._lock:
            self._open.discard(stream)

    def _expire(self) -> None:
        with self._lock:
            self.expired = True
            streams, self._open = self._open, set()
        for stream in streams:
            with contextlib.suppress(OSError):
                # Not close: a thread may be reading from it, and the descriptor could be reused.
                stream.shutdown(socket.SHUT_RDWR)
