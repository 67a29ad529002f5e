"""Limits of parallel polls per git host, so a slow host does not starve others.

A poll without a free slot waits here, not in a worker: 500 projects of a dead host block no other
project, and with any number of slow hosts a worker stays free to detect them. Pure except for its
own state. Called by `controller.source.poller`.
"""

from collections import OrderedDict
from itertools import islice

from controller.runtime.workqueue import ReconcileKey

MAX_PARALLEL_POLLS = 120
"""Maximum of all hosts; fewer than source workers."""
MAX_PER_HOST = 4
MAX_SLOW_PER_HOST = 1
MAX_SLOW = 8
"""Maximum of polls of slow or failing remotes, of all hosts."""
MAX_WOKEN_KEYS = 2
"""Keys woken per released slot: one of them may not need it any more."""


class HostSlots:
    """Polls in progress by host, and the keys that wait for a slot."""

    def __init__(self, max_polls: int = MAX_PARALLEL_POLLS) -> None:
        self._max_polls = max_polls
        self._polls: dict[str, int] = {}
        self._slow_polls: dict[str, int] = {}
        self._waiting: dict[str, OrderedDict[ReconcileKey, bool]] = {}

    def acquire(self, key: ReconcileKey, host: str, slow: bool) -> bool:
        """Acquire a slot of `host`; otherwise queue `key`, which `release` returns later."""
        if self._full(host, slow):
            self._waiting.setdefault(host, OrderedDict())[key] = slow
            return False
        self._polls[host] = self._polls.get(host, 0) + 1
        if slow:
            self._slow_polls[host] = self._slow_polls.get(host, 0) + 1
        return True

    def release(self, host: str, slow: bool) -> list[ReconcileKey]:
        """Release a slot; return the keys that may try again."""
        all_taken = self._all_taken
        _decrement(self._polls, host)
        if slow:
            _decrement(self._slow_polls, host)
        woken = self._next(host)
        if slow or all_taken:
            others = (other for other in list(self._waiting) if other != host)
            woken += islice((key for other in others for key in self._next(other)), MAX_WOKEN_KEYS)
        for key in woken:
            self.remove(key)
        return woken

    def remove(self, key: ReconcileKey) -> None:
        """Remove a waiting key."""
        for host, keys in list(self._waiting.items()):
            keys.pop(key, None)
            if not keys:
                del self._waiting[host]

    @property
    def waiting(self) -> int:
        """Number of waiting keys."""
        return sum(map(len, self._waiting.values()))

    def _next(self, host: str) -> list[ReconcileKey]:
        """Return the first keys that wait for this host and would get a slot."""
        waiting = self._waiting.get(host) or OrderedDict[ReconcileKey, bool]()
        fit = (key for key, slow in waiting.items() if not self._full(host, slow))
        return list(islice(fit, MAX_WOKEN_KEYS))

    @property
    def _all_taken(self) -> bool:
        return sum(self._polls.values()) >= self._max_polls

    def _full(self, host: str, slow: bool) -> bool:
        if self._all_taken or self._polls.get(host, 0) >= MAX_PER_HOST:
            return True
        return slow and (
            self._slow_polls.get(host, 0) >= MAX_SLOW_PER_HOST or sum(self._slow_polls.values()) >= MAX_SLOW
        )


def _decrement(counts: dict[str, int], host: str) -> None:
    counts[host] -= 1
    if not counts[host]:
        del counts[host]
