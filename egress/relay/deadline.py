"""After this time every connection of a way out ends, however much still drips in. Called by egress.relay.relay."""

import contextlib
import socket
import threading
import time

from egress.relay.timer import Alarms

_ALARMS = Alarms()


class Deadline:
    """Runs `seconds` from `start`; `over` is set then, and what was admitted is shut down."""

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._seconds, self._end = seconds, time.monotonic() + seconds
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._alarm: int | None = None

    def start(self) -> None:
        """The time begins."""
        self._end = time.monotonic() + self._seconds
        self._alarm = _ALARMS.set(self._end, self._expire)

    def stop(self) -> None:
        """It is not needed any more."""
        if self._alarm is not None:
            _ALARMS.drop(self._alarm)

    def left(self) -> float:
        """Seconds until the time is over; 0 or less once it is."""
        return self._end - time.monotonic()

    def admit(self, stream: socket.socket) -> None:
        """Lets a connection live until the time is over. Raises TimeoutError where it is."""
        with self._lock:
            if self.over:
                raise TimeoutError("the time of this way out is over")
            self._open.add(stream)

    def release(self, stream: socket.socket) -> None:
        """A connection that has ended by itself."""
        with self._lock:
            self._open.discard(stream)

    def _expire(self) -> None:
        with self._lock:
            self.over = True
            streams, self._open = self._open, set()
        for stream in streams:
            with contextlib.suppress(OSError):
                # Not close: a thread may be reading from it, and its number would be given to another file.
                stream.shutdown(socket.SHUT_RDWR)
