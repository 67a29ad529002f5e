"""Change notifications by key. Called by event logs, build logs, deployments.

A waiter takes a mark, checks the state, then waits from the mark on: it misses no change in the meantime.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

MAX_REMEMBERED_KEYS = 4000
"""Keys whose last notification is remembered; any other key had none since `_evicted_mark`."""


class Notifier:
    """Notifications of one process, by key."""

    single_process = True
    """Whether only this process notifies: a key without a notification is then unchanged."""

    def __init__(self) -> None:
        self._mark = self._evicted_mark = 0
        self._last: OrderedDict[str, int] = OrderedDict()
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._listening: dict[str, Callable[[], None]] = {}
        self._closed = False

    @property
    def mark(self) -> int:
        """The current position, for `wait`."""
        return self._mark

    @property
    def closed(self) -> bool:
        """Whether waits return immediately."""
        return self._closed

    def changed_since(self, key: str, mark: int) -> bool:
        """Return whether the key was notified after `mark`, or may have been."""
        return self._last.get(key, self._evicted_mark) > mark

    def notify(self, key: str) -> None:
        """Wake all waiters of the key, in every replica."""
        self._wake(key)

    def _wake(self, key: str) -> None:
        self._mark += 1
        self._last[key] = self._mark
        self._last.move_to_end(key)
        if len(self._last) > MAX_REMEMBERED_KEYS:
            self._evicted_mark = self._last.popitem(last=False)[1]
        for future in self._waiting.pop(key, ()):
            if not future.done():
                future.set_result(None)
        listener = self._listening.get(key)
        if listener is not None:
            listener()

    def listen(self, key: str, callback: Callable[[], None]) -> None:
        """Call `callback`, which must not fail or block, at each notification of the key. One per key."""
        self._listening[key] = callback

    def unlisten(self, key: str) -> None:
        """Undo `listen`."""
        self._listening.pop(key, None)

    async def wait(self, key: str, mark: int, timeout: float) -> None:
        """Return as soon as the key has been notified since `mark`, or after `timeout` seconds."""
        if self._closed or self.changed_since(key, mark):
            return
        future = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(key, set())
        waiting.add(future)
        try:
            await asyncio.wait((future,), timeout=timeout)
        finally:
            waiting.discard(future)
            if not waiting and self._waiting.get(key) is waiting:
                del self._waiting[key]

    def wake_all(self) -> None:
        """Wake all waiters and listeners, after notifications may have been lost."""
        for key in {*self._waiting, *self._listening}:
            self._wake(key)

    def close(self) -> None:
        """Wake all waiters; further waits return immediately."""
        self._closed = True
        self.wake_all()
