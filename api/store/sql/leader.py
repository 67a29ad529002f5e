"""Which replica does what only one is to do. Called by `api.maintenance.loops` through `Store.leader`."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

Work = Callable[[], Awaitable[None]]


class Leader(ABC):
    """Gives the work to one replica at a time, and to another within seconds once that one is gone."""

    elsewhere = False
    """Whether another replica was seen to lead."""

    leading = False
    """Whether this replica leads, as far as it knows."""

    @abstractmethod
    async def lead(self, work: Work) -> None:
        """Runs `work` while this replica leads, cancelled when it does no longer. Ends when `work` ends.

        For a moment two may lead, where the old one learns late that it does no longer: what is done must
        bear that.
        """


class Alone(Leader):
    """The only process there is: the store's directory has a lock."""

    async def lead(self, work: Work) -> None:
        """As `Leader.lead`."""
        self.leading = True
        try:
            await work()
        finally:
            self.leading = False
