"""Delays between attempts to reach a server that does not take a request. Pure."""

FIRST_BACKOFF_SECONDS = 5.0
JITTER_RATIO = 0.2
"""Share of a back-off that is random, up and down."""


def backoff_seconds(failures: int, longest: float, random: float) -> float:
    """Return the delay after this many failures in a row, before its jitter at most `longest` seconds.

    `random` from 0 to 1 spreads it.
    """
    # The exponent is bounded: a float overflows.
    base = min(FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 1, 16), longest)
    return base * (1 + JITTER_RATIO * (2 * random - 1))
