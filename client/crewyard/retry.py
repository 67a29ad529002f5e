"""When a call is sent again. Pure; used by both clients."""

import random
import time
from collections.abc import Callable

ATTEMPTS = 6
LONGEST = 30.0
RECONNECTS = 20
"""Connections of a stream in a row that bring nothing, and end soon."""
SOON = 10.0
"""Seconds; a proxy that ends every connection after some time lets a stream of a silent run live longer."""


def pause(failures: int, wished: float | None, draw: Callable[[], float] = random.random) -> float:
    """Seconds after that many failures in a row: what the service asks for, else doubling, half by chance."""
    if wished is not None:
        return min(max(wished, 0.0), 120.0)
    whole = min(LONGEST, 0.25 * 2.0 ** min(failures, 20))
    return whole / 2 + draw() * whole / 2


class Patience:
    """How often a stream is opened again. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._opened: float | None = None

    @property
    def exhausted(self) -> bool:
        """Whether it was opened in vain too often."""
        return self._failures >= RECONNECTS

    def opened(self) -> None:
        """The service has begun to answer."""
        self._opened = self._clock()

    def heard(self) -> None:
        """A message came."""
        self._failures = 0

    def broken(self, wished: float | None, silent: bool = False) -> float:
        """The connection is over, came to nothing, or fell `silent`: seconds until the next one."""
        if not silent and self._opened is not None and self._clock() - self._opened >= SOON:
            self._failures = 0
        self._opened = None
        self._failures += 1
        return pause(self._failures, wished)
