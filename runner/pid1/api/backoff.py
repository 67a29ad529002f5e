"""How long to wait before the same call again. Pure; used by every retry of process 1."""

from __future__ import annotations

FIRST = 0.05
LONGEST = 5.0


def delay(attempt: int, chance: float) -> float:
    """Seconds before attempt number `attempt` + 1 (counting from 1); `chance` in [0, 1) spreads pods."""
    ceiling = min(LONGEST, FIRST * 2.0 ** min(attempt - 1, 16))
    return ceiling * (0.5 + 0.5 * chance)
