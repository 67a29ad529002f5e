"""Runs whose log could not be read or sealed: they are left out for some minutes, and stop no other.

Called by the accounting and by the sealing of logs.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

RETRY_AFTER = timedelta(minutes=10)
MAX_POSTPONED_RUNS = 200
"""More mean that the store fails."""


class PostponedRuns:
    """Runs with the time from which they are tried again."""

    def __init__(self) -> None:
        self._retry_at: dict[str, datetime] = {}

    def names(self, now: datetime) -> Collection[str]:
        """Return the runs that are left out at this time; forget the others."""
        self._retry_at = {run: retry_at for run, retry_at in self._retry_at.items() if retry_at > now}
        return tuple(self._retry_at)

    def add(self, run: str, now: datetime) -> None:
        """Leave a run out from now on, unless there are too many."""
        if len(self._retry_at) < MAX_POSTPONED_RUNS:
            self._retry_at[run] = now + RETRY_AFTER
