"""Monotonic ULIDs: 26 characters that sort by time, and by order of generation within a millisecond.

Part of the names of runs and uploaded deployments (lower case, as object names require). Called by the API's
routes of runs and deployments and by the store.
"""

import secrets
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS = 80


class UlidGenerator:
    """Generator of ULIDs; each is greater than all before, also when the clock steps back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self, now_ms: int) -> str:
        """Return the next ULID at `now_ms` (epoch milliseconds)."""
        with self._lock:
            fresh = (now_ms << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS - 1)
            # The increment is random too, to keep neighbouring names unguessable.
            self._last = (
                fresh
                if fresh >> _RANDOM_BITS > self._last >> _RANDOM_BITS
                else self._last + 1 + secrets.randbits(32)
            )
            return encode(self._last)


def encode(value: int) -> str:
    """Encode a 128-bit number as 26 characters that sort like the numbers."""
    return "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))


_generator = UlidGenerator()


def new() -> str:
    """Return the next ULID of this process."""
    return _generator.next(time.time_ns() // 1_000_000)
