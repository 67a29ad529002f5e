"""When each Project's source is looked at next, and since when somebody wants it sooner. In memory.

Called by `controller.source.poller`; times are monotonic seconds.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

JITTER = 0.1
AGAIN = 3.0
"""Seconds after a push that was not seen yet: hosts tell of it before all their servers show it."""


@dataclass
class Schedule:
    """`due` and `seen` by Project: the next look, and when the listing began that the last one rests on."""

    draw: Callable[[float, float], float] = random.uniform
    due: dict[str, float] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)
    wanted: dict[str, float] = field(default_factory=dict)
    pushed: dict[str, str] = field(default_factory=dict)

    def tell(self, project: str, pushed: str) -> bool:
        """The annotation that a webhook writes; whether it is another one than before."""
        before = self.pushed.get(project)
        self.pushed[project] = pushed
        return before is not None and before != pushed

    def want(self, project: str, now: float) -> None:
        """A look is wanted now, and it must see what is there from now on."""
        self.wanted[project] = now

    def since(self, project: str, now: float, interval: float) -> float:
        """When a listing for this look must have begun: after the last one's, not half the interval ago."""
        if project in self.wanted:
            return self.wanted[project]
        # The least step above, since the very same listing tells nothing new.
        return max(self.seen.get(project, 0.0) + 1e-6, now - interval / 2)

    def looked(self, project: str, began: float, interval: float, wanted: float | None) -> None:
        """A look is over that rests on a listing begun then; what was wanted meanwhile still is."""
        self.seen[project] = began
        self.due[project] = began + interval * self.draw(1 - JITTER, 1 + JITTER)
        if self.wanted.get(project) == wanted:
            self.wanted.pop(project, None)

    def forget(self, project: str) -> None:
        """The Project follows nothing any more."""
        for table in (self.due, self.seen, self.wanted, self.pushed):
            table.pop(project, None)
