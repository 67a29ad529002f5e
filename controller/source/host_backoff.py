"""How long remotes that fail are left alone: one by one, and a whole host once two of its remotes failed.

Back-off doubles from a second to ten minutes. Pure but for its own memory; times
are monotonic seconds. Called by `controller.source.poller`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from controller.runtime.workqueue import backoff

UNIT = 20.0
"""Back-off in units of the queue's: 1 s, 2 s, 4 s, half of it by chance."""
SLOW = 5.0
"""Seconds of a look above which its remote is in doubt."""
MOST = 10_000


@dataclass
class Rest:
    """Failures in a row, and until when there is no look."""

    failures: int = 0
    until: float = 0.0

    def longer(self, now: float, most: float, draw: Callable[[int], float]) -> None:
        """One failure more."""
        self.failures += 1
        self.until = now + min(most, UNIT * draw(self.failures))


@dataclass
class Patience:
    """What is known of remotes (by address) and hosts. `most` is the longest rest in seconds."""

    most: float
    draw: Callable[[int], float] = backoff
    _remotes: dict[str, Rest] = field(default_factory=dict)
    _hosts: dict[str, Rest] = field(default_factory=dict)
    _failing: dict[str, set[str]] = field(default_factory=dict)
    _slow: dict[str, None] = field(default_factory=dict)

    def failed(self, url: str, host: str, now: float) -> None:
        """A look failed in a way that may pass by itself."""
        self._remotes.setdefault(url, Rest()).longer(now, self.most, self.draw)
        failing = self._failing.setdefault(host, set())
        if len(failing) < 2:
            failing.add(url)
        if len(failing) > 1:
            self._hosts.setdefault(host, Rest()).longer(now, self.most, self.draw)
        _bound(self._remotes)
        _bound(self._hosts)
        _bound(self._failing)

    def answered(self, url: str, host: str, seconds: float) -> None:
        """The remote gave an answer, be it that there is nothing, after so long."""
        self._remotes.pop(url, None)
        self._hosts.pop(host, None)
        self._failing.pop(host, None)
        self._slow.pop(url, None)
        if seconds > SLOW:
            self._slow[url] = None
            _bound(self._slow)

    def until(self, url: str, host: str) -> float:
        """Until when the remote is left alone."""
        return max(self._remotes.get(url, Rest()).until, self._hosts.get(host, Rest()).until)

    def doubts(self, url: str, host: str) -> bool:
        """Whether the remote was slow or away the last time."""
        return url in self._slow or url in self._remotes or host in self._hosts


def _bound(table: dict[str, Any]) -> None:
    while len(table) > MOST:
        del table[next(iter(table))]
