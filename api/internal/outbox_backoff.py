"""Back-off of failed status writes, by run. Pure.

Called by `api.internal.status_outbox` and `api.questions.status_delivery`.

A Run whose writes fail does not delay the others; after too many invalid writes its claim is given up.
"""

from collections.abc import Collection
from dataclasses import dataclass

FIRST_BACKOFF_SECONDS = 0.2
MAX_BACKOFF_SECONDS = 5.0
MIN_PAUSE_SECONDS = 0.05
MAX_INVALID_WRITES = 10
"""Consecutive Invalid errors, over about 25 s, after which a claim is given up."""


@dataclass
class _FailedWrite:
    retry_at: float
    delay: float
    invalid_count: int


class OutboxBackoff:
    """Runs whose claims could not be written; times are monotonic seconds."""

    def __init__(self) -> None:
        self._failed_writes: dict[str, _FailedWrite] = {}

    def __len__(self) -> int:
        return len(self._failed_writes)

    def is_due(self, run: str, now: float) -> bool:
        """Return whether to try a run's claim now."""
        failed_write = self._failed_writes.get(run)
        return failed_write is None or failed_write.retry_at <= now

    def next_retry(self) -> float | None:
        """Return the time of the earliest retry, or None without failed writes."""
        return min((failed_write.retry_at for failed_write in self._failed_writes.values()), default=None)

    def pause_seconds(self, now: float, longest: float) -> float:
        """Return the seconds until the earliest retry, at least 0.05; `longest` without failed writes."""
        next_retry = self.next_retry()
        return longest if next_retry is None else min(longest, max(next_retry - now, MIN_PAUSE_SECONDS))

    def record_failure(self, run: str, now: float, invalid: bool) -> bool:
        """Delay a run with exponential back-off. Return whether to give up: it was `invalid` too often."""
        failed_write = self._failed_writes.setdefault(run, _FailedWrite(now, FIRST_BACKOFF_SECONDS / 2, 0))
        failed_write.delay = min(failed_write.delay * 2, MAX_BACKOFF_SECONDS)
        failed_write.retry_at = now + failed_write.delay
        failed_write.invalid_count = failed_write.invalid_count + 1 if invalid else 0
        return failed_write.invalid_count >= MAX_INVALID_WRITES

    def remove(self, run: str) -> None:
        """Remove a run whose claim needs no more writes."""
        self._failed_writes.pop(run, None)

    def retain(self, runs: Collection[str]) -> None:
        """Remove all other runs: another task or replica has written their claims."""
        self._failed_writes = {
            run: failed_write for run, failed_write in self._failed_writes.items() if run in runs
        }
