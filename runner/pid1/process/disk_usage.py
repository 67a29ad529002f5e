"""Watches what the crew writes to the pod's disk. A thread, started by `work`, which kills in time.

Where the kubelet evicts the pod instead, the crew's last words, its events and its artifacts go with it.
"""

from __future__ import annotations

import os
import threading
import time

from runner.pid1.process import disk_tree, signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runner.pid1.settings import Settings

SHARE = 0.8
FIRST = 0.5  # seconds to the first look
LONG = 0.2  # seconds of a look in which a crew can move much from where we have been to where we come
_REGULAR = 1.0
_FASTEST = 2 << 30  # bytes a second that a crew can write: how soon the next look must be
_SLICE = 256  # entries between two pauses
_REST = 19  # pauses are so many times as long as the work: a twentieth of a core
_HURRIED = 1
_PARTS = 10_000  # directories told apart
_CLOCK = 1.0  # seconds: the times of files are those of a coarser clock than ours


class Storage(threading.Thread):
    """`exceeded` becomes the failure's message once the crew must be killed.

    A look at the file system's free space costs nothing, but others use it too; a walk through the tree tells
    the truth, but takes its time. So the walk comes regularly, and at once when the free space has gone down
    by what the crew had left.
    """

    def __init__(self, limit: int | None, roots: list[str], since: float) -> None:
        """`limit` in bytes, None: no watch; `since`, epoch seconds: what is older belongs to the image."""
        super().__init__(name="storage", daemon=True)
        self._limit = limit or 0
        self._bound = int(self._limit * SHARE)
        self._roots = distinct(roots)
        self._since = since
        self._ended = threading.Event()
        self._used = 0
        self._free_then = self._free()
        self.exceeded: str | None = None

    def run(self) -> None:
        """Looks until the crew has written too much, or until `end`."""
        if not self._limit:
            return
        walk_at = time.monotonic() + FIRST
        pause = next_look(0, self._bound, FIRST)
        while not self._ended.wait(pause):
            if self._guess() >= self._bound or time.monotonic() >= walk_at:
                begun, worked = time.monotonic(), time.thread_time()
                parts = self._walk()
                if parts is not None and self._above(parts) and time.monotonic() - begun > LONG:
                    # What was moved meanwhile, or made in the place of what was removed, may be in it twice.
                    parts = self._walk()
                if parts is None:
                    return
                if self._above(parts):
                    self.exceeded = message(self._limit, parts)
                    signals.poke()
                    return
                walk_at = begun + max(_REGULAR, _REST * (time.thread_time() - worked))
            pause = next_look(self._guess(), self._bound, _REGULAR)

    def _above(self, parts: dict[str, int]) -> bool:
        return sum(parts.values()) >= self._bound

    def end(self) -> None:
        """The crew is dead."""
        self._ended.set()

    def _walk(self) -> dict[str, int] | None:
        """Bytes by part, as many as suffice to know; None when the crew's end came first."""
        free = self._free()
        parts: dict[str, int] = {}
        total = 0
        worked = time.thread_time()
        for number, (part, size) in enumerate(self._written(), 1):
            parts[part] = parts.get(part, 0) + size
            total += size
            if total >= self._bound:
                break
            if number % _SLICE == 0:
                rest = _HURRIED if self._guess() >= self._bound else _REST
                if self._ended.wait((time.thread_time() - worked) * rest):
                    return None
                worked = time.thread_time()
            if len(parts) > _PARTS:
                parts = {"many directories": total}
        self._used, self._free_then = total, free
        return parts

    def _written(self) -> Iterator[tuple[str, int]]:
        devices = set()
        large: set[tuple[int, int]] = set()
        for root in self._roots:
            try:
                devices.add(os.stat(root).st_dev)
            except OSError:
                continue
            yield from disk_tree.written(root, self._since, os.getuid(), large)
        yield from disk_tree.deleted(devices)

    def _guess(self) -> int:
        """What the crew has written at most, unless others freed space meanwhile."""
        return self._used + max(0, self._free_then - self._free())

    def _free(self) -> int:
        try:
            status = os.statvfs(self._roots[0])
        except OSError:
            return 0
        return status.f_bfree * status.f_frsize


def watch(settings: Settings, environ: Mapping[str, str]) -> Storage:
    """The watch over all that the crew can write to, from now on; to be started before the crew is."""
    roots = [settings.app, environ.get("HOME", ""), environ.get("TMPDIR", ""), *settings.scratch]
    return Storage(settings.storage_limit, roots, time.time() - _CLOCK)


def next_look(used: int, bound: int, longest: float) -> float:
    """Seconds in which not even a fast crew gets from `used` to `bound`, within 50 ms and `longest`. Pure."""
    return min(longest, max(0.05, (bound - used) / _FASTEST))


def distinct(roots: list[str]) -> list[str]:
    """The directories as they really are, none below another, in order."""
    real = list(dict.fromkeys(os.path.realpath(root) for root in roots if root))
    return [root for root in real if root != "/" and not any(root.startswith(other + "/") for other in real)]


def message(limit: int, parts: dict[str, int]) -> str:
    """What the run's error says. Pure."""
    largest = max(parts, key=lambda part: parts[part])
    return (
        f"The crew wrote {size(sum(parts.values()))} to the pod's disk, above {SHARE:.0%} of its limit of "
        f"{size(limit)}, and was stopped before Kubernetes would evict it. Most of it: {largest[:200]!r}, "
        f"{size(parts[largest])}. Remove files as soon as they are not needed, or raise "
        "`spec.run.resources.limits.ephemeral-storage` of the project."
    )


def size(count: int) -> str:
    """Bytes as people read them. Pure."""
    for unit, one in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= one:
            return f"{count / one:.3g} {unit}"
    return f"{count} bytes"
