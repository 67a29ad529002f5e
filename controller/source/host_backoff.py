"""Back-off of failing git remotes: per remote, and per host once two of its remotes failed.

It doubles from a second to ten minutes. Pure except for its own state; times are monotonic
seconds. Called by `controller.source.poller`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from controller.runtime.workqueue import backoff

BACKOFF_FACTOR = 20.0
"""Multiple of the work queue's back-off: 1 s, 2 s, 4 s, half random."""
SLOW_SECONDS = 5.0
"""Duration of a poll above which its remote counts as slow."""
MAX_ENTRIES = 10_000


@dataclass
class BackoffState:
    """Consecutive failures, and the time of the next poll."""

    failures: int = 0
    retry_at: float = 0.0

    def extend(self, now: float, max_seconds: float, draw: Callable[[int], float]) -> None:
        """Record one more failure."""
        self.failures += 1
        self.retry_at = now + min(max_seconds, BACKOFF_FACTOR * draw(self.failures))


@dataclass
class HostBackoff:
    """Back-off of remotes (by URL) and hosts, at most `max_seconds`."""

    max_seconds: float
    draw: Callable[[int], float] = backoff
    _remotes: dict[str, BackoffState] = field(default_factory=dict)
    _hosts: dict[str, BackoffState] = field(default_factory=dict)
    _failing: dict[str, set[str]] = field(default_factory=dict)
    _slow: dict[str, None] = field(default_factory=dict)

    def record_failure(self, url: str, host: str, now: float) -> None:
        """Record a temporary failure of a poll."""
        self._remotes.setdefault(url, BackoffState()).extend(now, self.max_seconds, self.draw)
        failing = self._failing.setdefault(host, set())
        if len(failing) < 2:
            failing.add(url)
        if len(failing) > 1:
            self._hosts.setdefault(host, BackoffState()).extend(now, self.max_seconds, self.draw)
        _bound(self._remotes)
        _bound(self._hosts)
        _bound(self._failing)

    def record_success(self, url: str, host: str, seconds: float) -> None:
        """Record a response of the remote, even a refusal, after that many seconds."""
        self._remotes.pop(url, None)
        self._hosts.pop(host, None)
        self._failing.pop(host, None)
        self._slow.pop(url, None)
        if seconds > SLOW_SECONDS:
            self._slow[url] = None
            _bound(self._slow)

    def retry_at(self, url: str, host: str) -> float:
        """Return when the remote may be polled again."""
        return max(
            self._remotes.get(url, BackoffState()).retry_at, self._hosts.get(host, BackoffState()).retry_at
        )

    def is_slow(self, url: str, host: str) -> bool:
        """Return whether the last poll of the remote was slow or failed."""
        return url in self._slow or url in self._remotes or host in self._hosts


def _bound(table: dict[str, Any]) -> None:
    while len(table) > MAX_ENTRIES:
        del table[next(iter(table))]
