"""Pauses that a host of commits asked for, by project and host: one token has one limit. Pure.

Called by `controller.github.reconcile` and `controller.commit_status.reconcile`.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

MAX_RETRY_SECONDS = 7200.0
"""Upper bound of a pause; GitHub's limits are counted by the hour."""


@dataclass
class RequestPauses:
    """The end of each pause; there are as many as projects at most, for each host."""

    until: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def pause(self, project: str, host: str, seconds: float, now: datetime) -> None:
        """Pause the requests of a project to a host, as the host requested; the longest pause holds."""
        end = now + timedelta(seconds=min(seconds, MAX_RETRY_SECONDS))
        self.until[project, host] = max(end, self.until.get((project, host), end))

    def left(self, project: str, host: str, now: datetime) -> float:
        """Return the remaining seconds of the pause; 0 if there is none."""
        until = self.until.get((project, host))
        if until is None or until <= now:
            self.until.pop((project, host), None)
            return 0.0
        return (until - now).total_seconds()
