"""The event streams that are open, and whose. Called by `api.follow`, `api.app` and the routes of keys."""

import asyncio
from collections import OrderedDict

from api import errors

REMEMBERED = 10_000
"""Revoked keys that are remembered: a stream of one may be about to open."""


class Streams:
    """Every stream is a task; each can be ended so that its answer ends properly."""

    def __init__(self) -> None:
        self._keys: dict[asyncio.Task[object], str] = {}
        self._timers: dict[asyncio.Task[object], asyncio.TimerHandle] = {}
        self._ended: set[asyncio.Task[object]] = set()
        self._revoked: OrderedDict[str, None] = OrderedDict()
        self.closing = False

    def enter(self, key_id: str, seconds: float | None = None) -> None:
        """The current task is now a stream of this key, which holds for `seconds` more (None: for ever).

        Raises the 401 where the key was revoked since it was checked.
        """
        if key_id in self._revoked:
            raise errors.unauthorized()
        task = _current()
        self._keys[task] = key_id
        if seconds is not None:
            self._timers[task] = asyncio.get_running_loop().call_later(max(0.0, seconds), self._end, task)

    def leave(self) -> None:
        """The current task's stream has ended."""
        task = _current()
        self._keys.pop(task, None)
        self._ended.discard(task)
        timer = self._timers.pop(task, None)
        if timer is not None:
            timer.cancel()

    def ended(self, task: asyncio.Task[object]) -> bool:
        """Whether the task was cancelled from here, and not by its connection."""
        return self.closing or task in self._ended

    def revoke(self, key_id: str) -> None:
        """The key holds no longer: its streams end, and none opens any more."""
        self._revoked[key_id] = None
        if len(self._revoked) > REMEMBERED:
            self._revoked.popitem(last=False)
        for task in [task for task, owner in self._keys.items() if owner == key_id]:
            self._end(task)

    def close(self) -> None:
        """Wakes every stream; each ends its answer properly, and its reader resumes elsewhere."""
        self.closing = True
        for task in self._keys:
            task.cancel()

    def _end(self, task: asyncio.Task[object]) -> None:
        self._ended.add(task)
        task.cancel()


def _current() -> asyncio.Task[object]:
    task = asyncio.current_task()
    assert task is not None
    return task
