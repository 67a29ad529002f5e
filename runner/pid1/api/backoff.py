"""Exponential back-off with jitter. Pure; used by every retry of process 1."""

from __future__ import annotations

FIRST_DELAY_SECONDS = 0.05
MAX_DELAY_SECONDS = 5.0


def delay(attempt: int, jitter: float) -> float:
    """Return the seconds to wait after attempt `attempt` (from 1); `jitter` in [0, 1) spreads pods."""
    ceiling = min(MAX_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0 ** min(attempt - 1, 16))
    return ceiling * (0.5 + 0.5 * jitter)
