"""Waking those who wait for something to happen to a key. Called by event logs, build logs, deployments.

A waiter takes a mark, looks, and waits from the mark on: what happened between
looking and waiting is not missed.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

REMEMBERED = 10_000
"""Keys whose last ring is remembered. Of another key it is known that it did not ring since `_forgotten`."""


class Signals:
    """Rings of one process, by key."""

    alone = True
    """Whether nobody rings but this process, so that what did not ring has not changed."""

    def __init__(self) -> None:
        self._now = self._forgotten = 0
        self._last: OrderedDict[str, int] = OrderedDict()
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._listening: dict[str, Callable[[], None]] = {}
        self._closed = False

    @property
    def mark(self) -> int:
        """The present moment, for `wait`."""
        return self._now

    def since(self, key: str, mark: int) -> bool:
        """Whether the key rang after `mark`, or may have."""
        return self._last.get(key, self._forgotten) > mark

    def ring(self, key: str) -> None:
        """Wakes all who wait for the key, in every replica."""
        self._hear(key)

    def _hear(self, key: str) -> None:
        self._now += 1
        self._last[key] = self._now
        self._last.move_to_end(key)
        if len(self._last) > REMEMBERED:
            self._forgotten = self._last.popitem(last=False)[1]
        for future in self._waiting.pop(key, ()):
            if not future.done():
                future.set_result(None)
        listener = self._listening.get(key)
        if listener is not None:
            listener()

    def listen(self, key: str, heard: Callable[[], None]) -> None:
        """Calls `heard`, which must not fail nor wait, at every ring of the key; one listens to a key."""
        self._listening[key] = heard

    def unlisten(self, key: str) -> None:
        """Ends what `listen` began."""
        self._listening.pop(key, None)

    async def wait(self, key: str, mark: int, timeout: float) -> None:
        """Returns at once if the key rang since `mark`, else when it does, or after `timeout` seconds."""
        if self._closed or self.since(key, mark):
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
        """Wakes everyone, where rings may have been missed."""
        for key in {*self._waiting, *self._listening}:
            self._hear(key)

    def close(self) -> None:
        """Wakes everyone; nobody waits any more."""
        self._closed = True
        self.wake_all()
