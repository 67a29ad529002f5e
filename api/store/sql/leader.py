"""Leader election between replicas. Called by `api.maintenance.loops` through `Store.leader`."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

Work = Callable[[], Awaitable[None]]


class Leader(ABC):
    """Leader election: one replica works at a time; another takes over within seconds of its end."""

    other_leader_seen = False
    """Whether another replica is leading."""

    leading = False
    """Whether this replica leads, as far as it knows."""

    @abstractmethod
    async def lead(self, work: Work) -> None:
        """Run `work` while this replica leads; cancel it on loss of leadership. Return when `work` returns.

        Two replicas may lead for a moment, if the old one learns late of its loss: `work` must tolerate that.
        """


class SingleProcessLeader(Leader):
    """The leader of a store with a single process, which the directory lock guarantees."""

    async def lead(self, work: Work) -> None:
        """Implement `Leader.lead`."""
        self.leading = True
        try:
            await work()
        finally:
            self.leading = False
