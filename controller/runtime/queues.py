"""Three work queues behind one `add`: what talks to git repositories, what talks to GitHub, and all the rest.

A slow repository, or GitHub, then never holds up a run. Called by everyone who enqueues.
"""

from collections.abc import Callable

from controller.runtime.event_map import GITHUB, SOURCE
from controller.runtime.workqueue import Key, WorkQueue


class Lanes:
    """Routes keys by their kind of work. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.main = WorkQueue(clock)
        self.sources = WorkQueue(clock)
        self.reports = WorkQueue(clock)

    def add(self, key: Key, after: float = 0.0) -> None:
        """Asks for a look at `key`, now or in `after` seconds."""
        self._lane(key).add(key, after)

    def forget(self, key: Key) -> None:
        """Drops what is planned for `key` later."""
        self._lane(key).forget(key)

    def _lane(self, key: Key) -> WorkQueue:
        return {SOURCE: self.sources, GITHUB: self.reports}.get(key.plural, self.main)
