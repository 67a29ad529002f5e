"""Locks of this process with a bounded wait. Called by the databases and by the journals of logs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from api.store.errors import StoreUnavailable


@asynccontextmanager
async def hold_lock(lock: asyncio.Lock, seconds: float, busy: str = "the index") -> AsyncIterator[None]:
    """Hold the lock, acquired in order. Raises StoreUnavailable after `seconds`: `busy` says what is busy."""
    try:
        async with asyncio.timeout(seconds):
            await lock.acquire()
    except TimeoutError as error:
        raise StoreUnavailable(f"{busy} is busy; try again") from error
    try:
        yield
    finally:
        lock.release()


class NamedLocks:
    """A lock for each name, as long as it is held or awaited."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    def __contains__(self, name: str) -> bool:
        """Return whether the lock is held or awaited."""
        return name in self._locks

    @asynccontextmanager
    async def hold(self, name: str, seconds: float, busy: str = "the index") -> AsyncIterator[None]:
        """Hold the lock of that name. Raises as `hold_lock`."""
        lock, users = self._locks.get(name, (asyncio.Lock(), 0))
        self._locks[name] = (lock, users + 1)
        try:
            async with hold_lock(lock, seconds, busy):
                yield
        finally:
            lock, users = self._locks.pop(name)
            if users > 1:
                self._locks[name] = (lock, users - 1)
