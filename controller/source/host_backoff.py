"""Back-off of failing git remotes: per remote, and per host once it failed for two Projects.

Only failures to list a repository count for its host: a Project chooses its ref, so it can make the read of a
commit fail at any host. It doubles from a second to ten minutes; no Project waits for a host that failed for
others longer than two of its own intervals. Pure except for its own state; times are monotonic
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
MAX_HOST_INTERVALS = 2.0
"""Intervals that a Project waits at most for a host that failed for others."""
MAX_ENTRIES = 10_000


@dataclass
class BackoffState:
    """Consecutive failures, and the time of the next poll."""

    failures: int = 0
    failed_at: float = 0.0
    retry_at: float = 0.0

    def extend(self, now: float, max_seconds: float, draw: Callable[[int], float]) -> None:
        """Record one more failure."""
        self.failures += 1
        self.failed_at = now
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

    def record_unread_commit(self, url: str, project: str, now: float) -> None:
        """Record a temporary failure to read a commit of a repository that was listed: this Project's own."""
        own = _own(url, project)
        self._remotes.setdefault(own, BackoffState()).extend(now, self.max_seconds, self.draw)
        _bound(self._remotes)

    def record_failure(self, url: str, host: str, project: str, now: float) -> None:
        """Record a temporary failure to list a repository for a Project."""
        self._remotes.setdefault(url, BackoffState()).extend(now, self.max_seconds, self.draw)
        failing = self._failing.setdefault(host, set())
        if len(failing) < 2:
            failing.add(project)
        if len(failing) > 1:
            self._hosts.setdefault(host, BackoffState()).extend(now, self.max_seconds, self.draw)
        _bound(self._remotes)
        _bound(self._hosts)
        _bound(self._failing)

    def record_listing(self, url: str, host: str) -> None:
        """Record that a repository was listed: the host answers."""
        self._remotes.pop(url, None)
        self._hosts.pop(host, None)
        self._failing.pop(host, None)

    def record_success(
        self, url: str, host: str, project: str, seconds: float, connected: bool = True
    ) -> None:
        """Record a poll without a temporary failure: a success or a refusal, after that many seconds.

        Without a connection it says nothing about the host.
        """
        self._remotes.pop(_own(url, project), None)
        if not connected:
            return
        self.record_listing(url, host)
        self._slow.pop(url, None)
        if seconds > SLOW_SECONDS:
            self._slow[url] = None
            _bound(self._slow)

    def retry_at(self, url: str, host: str, project: str, interval: float) -> float:
        """Return when a Project with that interval may poll the remote again."""
        own = max(self._remotes.get(key, BackoffState()).retry_at for key in (url, _own(url, project)))
        of_host = self._hosts.get(host, BackoffState())
        return max(own, min(of_host.retry_at, of_host.failed_at + MAX_HOST_INTERVALS * interval))

    def is_slow(self, url: str, host: str, project: str) -> bool:
        """Return whether the last poll of the remote was slow or failed."""
        failed = url in self._remotes or _own(url, project) in self._remotes
        return url in self._slow or failed or host in self._hosts


def _own(url: str, project: str) -> str:
    """Return the key of a remote that failed for one Project only; no URL has a space."""
    return f"{url} {project}"


def _bound(table: dict[str, Any]) -> None:
    while len(table) > MAX_ENTRIES:
        del table[next(iter(table))]
