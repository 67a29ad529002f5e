"""Exponential back-off. Pure. Called by the work queue, and by what repeats a refused write or check."""

_MAX_DOUBLINGS = 30
"""A float overflows with many more."""


def backoff_seconds(first: float, failures: int, longest: float) -> float:
    """Return the wait after so many consecutive failures: `first`, doubled by each further one."""
    return min(longest, first * 2.0 ** min(failures - 1, _MAX_DOUBLINGS))
