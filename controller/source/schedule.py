"""Poll schedule by Project: next poll, and earlier requested ones. In memory.

Called by `controller.source.poller`; times are monotonic seconds.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

JITTER_FRACTION = 0.1
PUSH_RETRY_SECONDS = 3.0
"""Retry interval after a push that is not visible yet: hosts notify before all their servers show it."""


@dataclass
class PollSchedule:
    """By Project: `due` is the next poll, `listed_at` the start of the listing of the last one."""

    draw: Callable[[float, float], float] = random.uniform
    due: dict[str, float] = field(default_factory=dict)
    listed_at: dict[str, float] = field(default_factory=dict)
    requested: dict[str, float] = field(default_factory=dict)
    pushed: dict[str, str] = field(default_factory=dict)

    def note_push(self, project: str, pushed: str) -> bool:
        """Store the annotation that a webhook writes; return whether it changed."""
        before = self.pushed.get(project)
        self.pushed[project] = pushed
        return before is not None and before != pushed

    def request(self, project: str, now: float) -> None:
        """Request a poll now; its listing must start after `now`."""
        self.requested[project] = now

    def listed_since(self, project: str, now: float, interval: float) -> float:
        """Return the earliest usable listing: after the last one, at most half an interval old."""
        if project in self.requested:
            return self.requested[project]
        # Slightly above, since the same listing has nothing new.
        return max(self.listed_at.get(project, 0.0) + 1e-6, now - interval / 2)

    def due_at(self, project: str, interval: float) -> float:
        """Return when the next poll is due; a shorter interval than that of the last poll counts at once."""
        latest = self.listed_at.get(project, 0.0) + interval * (1 + JITTER_FRACTION)
        return min(self.due.get(project, 0.0), latest)

    def polled(self, project: str, listed_at: float, interval: float, requested: float | None) -> None:
        """Record a poll with a listing started at `listed_at`; keep requests made meanwhile."""
        self.listed_at[project] = listed_at
        self.due[project] = listed_at + interval * self.draw(1 - JITTER_FRACTION, 1 + JITTER_FRACTION)
        if self.requested.get(project) == requested:
            self.requested.pop(project, None)

    def remove(self, project: str) -> None:
        """Remove a Project without a source."""
        for table in (self.due, self.listed_at, self.requested, self.pushed):
            table.pop(project, None)
