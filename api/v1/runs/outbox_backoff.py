"""When what the apiserver refused is tried again, run by run. Pure; called by `api.v1.runs.status_outbox`.

One Run that takes nothing must not keep the others waiting, and one that never will is given up.
"""

from collections.abc import Collection
from dataclasses import dataclass

FIRST_PAUSE = 0.2
MAX_PAUSE = 5.0
MOST_REFUSALS = 10
"""Refusals as invalid, over about 25 s, after which a claim is given up."""


@dataclass
class _Trouble:
    due: float
    pause: float
    refusals: int


class Pace:
    """The runs whose claims could not be written; times are monotonic seconds."""

    def __init__(self) -> None:
        self._troubles: dict[str, _Trouble] = {}

    def __len__(self) -> int:
        return len(self._troubles)

    def due(self, run: str, now: float) -> bool:
        """Whether a run's claim is to be tried now."""
        found = self._troubles.get(run)
        return found is None or found.due <= now

    def next(self) -> float | None:
        """When the first of them is to be tried again; None where there is none."""
        return min((found.due for found in self._troubles.values()), default=None)

    def failed(self, run: str, now: float, invalid: bool) -> bool:
        """Puts a run off, each time for longer; whether it is to be given up: it was `invalid` too often."""
        found = self._troubles.setdefault(run, _Trouble(now, FIRST_PAUSE / 2, 0))
        found.pause = min(found.pause * 2, MAX_PAUSE)
        found.due = now + found.pause
        found.refusals = found.refusals + 1 if invalid else 0
        return found.refusals >= MOST_REFUSALS

    def settled(self, run: str) -> None:
        """A run's claim needs no more tries."""
        self._troubles.pop(run, None)

    def keep(self, runs: Collection[str]) -> None:
        """Forgets all other runs: somebody else has written their claims."""
        self._troubles = {run: found for run, found in self._troubles.items() if run in runs}
