"""When a call is sent again. Pure; used by both clients."""

import random
from collections.abc import Callable

ATTEMPTS = 6
LONGEST = 30.0
RECONNECTS = 20
"""Connections of a stream in a row that bring nothing."""


def pause(failures: int, wished: float | None, draw: Callable[[], float] = random.random) -> float:
    """Seconds after that many failures in a row: what the service asks for, else doubling, half by chance."""
    if wished is not None:
        return min(max(wished, 0.0), 120.0)
    whole = min(LONGEST, 0.25 * 2.0 ** min(failures, 20))
    return whole / 2 + draw() * whole / 2
