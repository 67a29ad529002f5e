"""Monotonic ULIDs: 26 characters that sort by time, and by order of making within a millisecond.

Names of runs and of uploaded deployments are made of them (lower-case, as object
names must be). Called by accept, the routes of deployments and the store.
"""

import secrets
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS = 80


class Ulids:
    """A source of ULIDs, each greater than all it gave before, also when the clock steps back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self, now_ms: int) -> str:
        """The next ULID at `now_ms` (epoch milliseconds)."""
        with self._lock:
            fresh = (now_ms << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS - 1)
            # The step is random too, so that a name does not tell its neighbour's.
            self._last = (
                fresh
                if fresh >> _RANDOM_BITS > self._last >> _RANDOM_BITS
                else self._last + 1 + secrets.randbits(32)
            )
            return encode(self._last)


def encode(value: int) -> str:
    """The 26 letters of a 128-bit number, in the order of the numbers."""
    return "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))


_source = Ulids()


def new() -> str:
    """The process's next ULID."""
    return _source.next(time.time_ns() // 1_000_000)
