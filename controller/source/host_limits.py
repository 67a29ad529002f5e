"""Who may look at a remote now, so that a slow one takes no place from the others.

A look that finds no place waits here and not in a worker: 500 projects of a dead
host then hold up nobody, and however many hosts are slow, a worker is left who finds
that out. Pure but for its own memory. Called by `controller.source.poller`.
"""

from collections import OrderedDict
from itertools import islice

from controller.runtime.workqueue import Key

MOST = 120
"""Of all hosts together; fewer than there are workers."""
OF_ONE_HOST = 4
DOUBTFUL_OF_ONE_HOST = 1
DOUBTFUL = 8
"""Of all places, those for remotes that were slow or away the last time."""
AWAKENED = 2
"""Keys that try again for a place that was freed: one of them may not need it any more."""


class Places:
    """Looks that are going on, by host, and the keys that wait for their end."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._taken: dict[str, int] = {}
        self._doubtful: dict[str, int] = {}
        self._waiting: dict[str, OrderedDict[Key, bool]] = {}

    def take(self, key: Key, host: str, doubtful: bool) -> bool:
        """Takes a place at `host`; else `key` waits, and comes back from `free`."""
        if self._full(host, doubtful):
            self._waiting.setdefault(host, OrderedDict())[key] = doubtful
            return False
        self._taken[host] = self._taken.get(host, 0) + 1
        if doubtful:
            self._doubtful[host] = self._doubtful.get(host, 0) + 1
        return True

    def free(self, host: str, doubtful: bool) -> list[Key]:
        """Gives a place back; the keys that may try again."""
        crowded = self._crowded
        _less(self._taken, host)
        if doubtful:
            _less(self._doubtful, host)
        found = self._next(host)
        if doubtful or crowded:
            others = (other for other in list(self._waiting) if other != host)
            found += islice((key for other in others for key in self._next(other)), AWAKENED)
        for key in found:
            self.forget(key)
        return found

    def forget(self, key: Key) -> None:
        """The key waits no longer."""
        for host, keys in list(self._waiting.items()):
            keys.pop(key, None)
            if not keys:
                del self._waiting[host]

    @property
    def waiting(self) -> int:
        """How many keys wait."""
        return sum(map(len, self._waiting.values()))

    def _next(self, host: str) -> list[Key]:
        """The first that wait for this host and would get a place."""
        waiting = self._waiting.get(host) or OrderedDict[Key, bool]()
        fit = (key for key, doubtful in waiting.items() if not self._full(host, doubtful))
        return list(islice(fit, AWAKENED))

    @property
    def _crowded(self) -> bool:
        return sum(self._taken.values()) >= self._most

    def _full(self, host: str, doubtful: bool) -> bool:
        if self._crowded or self._taken.get(host, 0) >= OF_ONE_HOST:
            return True
        return doubtful and (
            self._doubtful.get(host, 0) >= DOUBTFUL_OF_ONE_HOST or sum(self._doubtful.values()) >= DOUBTFUL
        )


def _less(counts: dict[str, int], host: str) -> None:
    counts[host] -= 1
    if not counts[host]:
        del counts[host]
