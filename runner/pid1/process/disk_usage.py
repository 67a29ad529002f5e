"""Watches the disk usage of the crew, in a thread started by `work`, which kills the crew before an eviction.

An eviction by the kubelet would lose the crew's last events and artifacts.
"""

from __future__ import annotations

import os
import threading
import time

from runner.pid1.process import disk_tree, signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runner.pid1.settings import RunnerSettings

KILL_SHARE = 0.8
FIRST_CHECK_SECONDS = 0.5
LONG_WALK_SECONDS = 0.2  # a longer walk may count files twice that the crew moves meanwhile
_WALK_INTERVAL_SECONDS = 1.0
_MAX_WRITE_BYTES_PER_SECOND = 2 << 30  # determines how soon the next check must be
_ENTRIES_PER_SLICE = 256  # between two pauses
_PAUSE_FACTOR = 19  # ratio of pause to work: 5 % of a core
_URGENT_PAUSE_FACTOR = 1
_MAX_PARTS = 10_000  # directories counted separately
_CLOCK_SLACK_SECONDS = 1.0  # file timestamps come from a coarser clock


class DiskWatcher(threading.Thread):
    """The watcher thread. `exceeded` is the message of the failure once the crew must be killed.

    Reading the free space of the file system is cheap, but other pods use it too; walking the tree is exact,
    but slow. So it walks regularly, and immediately when the free space has shrunk by the crew's remainder.
    """

    def __init__(self, limit: int | None, roots: list[str], since: float) -> None:
        """`limit` in bytes (None: no limit); files older than `since` (epoch seconds) belong to the image."""
        super().__init__(name="disk usage", daemon=True)
        self._limit = limit or 0
        self._threshold = int(self._limit * KILL_SHARE)
        self._roots = distinct_roots(roots)
        self._since = since
        self._stopped = threading.Event()
        self._used = 0
        self._free_at_walk = self._free_bytes()
        self.exceeded: str | None = None

    def run(self) -> None:
        """Check until the crew has written too much, or until `stop`."""
        if not self._limit:
            return
        walk_at = time.monotonic() + FIRST_CHECK_SECONDS
        pause = next_check_seconds(0, self._threshold, FIRST_CHECK_SECONDS)
        while not self._stopped.wait(pause):
            if self._estimate() >= self._threshold or time.monotonic() >= walk_at:
                started, worked = time.monotonic(), time.thread_time()
                parts = self._walk()
                if (
                    parts is not None
                    and self._above(parts)
                    and time.monotonic() - started > LONG_WALK_SECONDS
                ):
                    # Files that were moved or replaced during a long walk may be counted twice: walk again.
                    parts = self._walk()
                if parts is None:
                    return
                if self._above(parts):
                    self.exceeded = limit_message(self._limit, parts)
                    signals.wake_main_thread()
                    return
                walk_at = started + max(_WALK_INTERVAL_SECONDS, _PAUSE_FACTOR * (time.thread_time() - worked))
            pause = next_check_seconds(self._estimate(), self._threshold, _WALK_INTERVAL_SECONDS)

    def _above(self, parts: dict[str, int]) -> bool:
        return sum(parts.values()) >= self._threshold

    def stop(self) -> None:
        """Stop the thread after the crew's exit."""
        self._stopped.set()

    def _walk(self) -> dict[str, int] | None:
        """Return bytes by part, up to the threshold; None if `stop` was called first."""
        free = self._free_bytes()
        parts: dict[str, int] = {}
        total = 0
        worked = time.thread_time()
        for number, (part, size) in enumerate(self._written(), 1):
            parts[part] = parts.get(part, 0) + size
            total += size
            if total >= self._threshold:
                break
            if number % _ENTRIES_PER_SLICE == 0:
                factor = _URGENT_PAUSE_FACTOR if self._estimate() >= self._threshold else _PAUSE_FACTOR
                if self._stopped.wait((time.thread_time() - worked) * factor):
                    return None
                worked = time.thread_time()
            if len(parts) > _MAX_PARTS:
                parts = {"many directories": total}
        self._used, self._free_at_walk = total, free
        return parts

    def _written(self) -> Iterator[tuple[str, int]]:
        devices = set()
        large: set[tuple[int, int]] = set()
        for root in self._roots:
            try:
                devices.add(os.stat(root).st_dev)
            except OSError:
                continue
            yield from disk_tree.changed_entries(root, self._since, os.getuid(), large)
        yield from disk_tree.deleted_open_files(devices)

    def _estimate(self) -> int:
        """Return an upper bound of the bytes written, unless other pods freed space meanwhile."""
        return self._used + max(0, self._free_at_walk - self._free_bytes())

    def _free_bytes(self) -> int:
        try:
            status = os.statvfs(self._roots[0])
        except OSError:
            return 0
        return status.f_bfree * status.f_frsize


def disk_watcher(settings: RunnerSettings, environ: Mapping[str, str], started: float) -> DiskWatcher:
    """Return the watcher of all directories that the crew can write to, since `started` (epoch seconds)."""
    roots = [settings.app, environ.get("HOME", ""), environ.get("TMPDIR", ""), *settings.scratch]
    return DiskWatcher(settings.storage_limit, roots, started - _CLOCK_SLACK_SECONDS)


def next_check_seconds(used: int, threshold: int, longest: float) -> float:
    """Return the seconds in which even a fast crew cannot reach `threshold`, 50 ms to `longest`. Pure."""
    return min(longest, max(0.05, (threshold - used) / _MAX_WRITE_BYTES_PER_SECOND))


def distinct_roots(roots: list[str]) -> list[str]:
    """Return the resolved directories in order, without those below another."""
    real = list(dict.fromkeys(os.path.realpath(root) for root in roots if root))
    return [root for root in real if root != "/" and not any(root.startswith(other + "/") for other in real)]


def limit_message(limit: int, parts: dict[str, int]) -> str:
    """Return the error message of the run. Pure."""
    largest = max(parts, key=lambda part: parts[part])
    return (
        f"The crew wrote {format_bytes(sum(parts.values()))} to the pod's disk, above {KILL_SHARE:.0%} of "
        f"its limit of {format_bytes(limit)}, and was stopped to prevent an eviction. "
        f"Most of it: {largest[:200]!r}, "
        f"{format_bytes(parts[largest])}. Remove files when they are no longer needed, or raise "
        "`spec.run.resources.limits.ephemeral-storage` of the project."
    )


def format_bytes(count: int) -> str:
    """Return a number of bytes as text. Pure."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} bytes"
