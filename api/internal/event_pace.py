"""Pace of a project's events: above its rate, the response to a runner waits, and with it the next call.

One project cannot occupy the event loop. A runner that waits keeps its events and blocks the crew's print
once its queue is full, so nothing is lost. Called by `api.internal.events`.
"""

BURST_SECONDS = 1.0
"""Events of so many seconds are accepted at once."""
MAX_DELAY_SECONDS = 0.25
"""Of one response: a full queue of a runner is delivered within the time after its crew's end."""
MAX_PROJECTS = 10_000


class EventPace:
    """When each project has used up its rate, on a monotonic clock."""

    def __init__(self, events_per_second: int) -> None:
        self._rate = events_per_second
        self._until: dict[str, float] = {}

    def delay(self, project: str, count: int, now: float) -> float:
        """Count events of a project; return the seconds that the response waits."""
        used = max(self._until.pop(project, 0.0), now - BURST_SECONDS) + count / self._rate
        self._until[project] = min(used, now + MAX_DELAY_SECONDS)
        if len(self._until) > MAX_PROJECTS:
            del self._until[next(iter(self._until))]
        return max(0.0, self._until[project] - now)
