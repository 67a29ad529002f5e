"""Work queues behind one `add`: git polling, GitHub reports, attestations and all other kinds.

A slow repository, GitHub or registry never delays a run. Called by the event handlers and the reconcilers.
"""

from collections.abc import Callable

from controller.runtime.event_map import ATTESTATION, COMMIT_STATUS, GITHUB, SOURCE
from controller.runtime.workqueue import ReconcileKey, WorkQueue


class Queues:
    """Work queues; routes each key by its kind. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.main = WorkQueue(clock)
        self.sources = WorkQueue(clock)
        self.reports = WorkQueue(clock)
        self.attestations = WorkQueue(clock)

    def add(self, key: ReconcileKey, after: float = 0.0, listed: bool = False) -> None:
        """Enqueue `key` now or in `after` seconds; with a lower priority if only a list shows its object."""
        self._queue(key).add(key, after, listed)

    def remove(self, key: ReconcileKey) -> None:
        """Drop delayed work for `key`."""
        self._queue(key).remove(key)

    def _queue(self, key: ReconcileKey) -> WorkQueue:
        return {
            SOURCE: self.sources,
            GITHUB: self.reports,
            COMMIT_STATUS: self.reports,
            ATTESTATION: self.attestations,
        }.get(key.plural, self.main)
