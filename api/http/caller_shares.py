"""Shares of one caller in what all callers have: downloads at a time, bytes of bodies being read.

Called by `api.routing`. A caller that stops reading or sending holds its own share only.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from api import errors


class CallerSlots:
    """Slots for long responses: `total` for all callers, `per_caller` for one."""

    def __init__(self, total: int, per_caller: int) -> None:
        self._total = total
        self._per_caller = per_caller
        self._taken: Counter[str] = Counter()

    @contextmanager
    def slot(self, caller: str) -> Iterator[None]:
        """Take a slot. Raises a 429 if the caller has all of its own, a 503 if all are taken."""
        headers = {"Retry-After": str(errors.RETRY_SECONDS)}
        if self._taken[caller] >= self._per_caller:
            message = f"this key has {self._per_caller} downloads in progress; wait until one has ended"
            raise errors.HttpApiError(429, message, {"limit": self._per_caller}, headers)
        if self._taken.total() >= self._total:
            raise errors.unavailable("too many downloads are in progress; try again shortly")
        self._taken[caller] += 1
        try:
            yield
        finally:
            self._taken[caller] -= 1
            if not self._taken[caller]:
                del self._taken[caller]


class ByteBudget:
    """Bytes that are held in memory at a time: `total` for all callers, `per_caller` for one."""

    def __init__(self, total: int, per_caller: int, wait_seconds: float) -> None:
        self._total = total
        self._per_caller = per_caller
        self._wait_seconds = wait_seconds
        self._held: Counter[str] = Counter()
        self._freed = asyncio.Condition()

    @asynccontextmanager
    async def reserve(self, caller: str, size: int) -> AsyncIterator[None]:
        """Hold bytes, at most a caller's share. Raises a 429 if its own stay held, a 503 if all do."""
        size = min(size, self._per_caller)
        try:
            async with asyncio.timeout(self._wait_seconds), self._freed:
                await self._freed.wait_for(lambda: self._fits(caller, size))
                self._held[caller] += size
        except TimeoutError as error:
            if self._held[caller] + size <= self._per_caller:
                raise errors.unavailable("too many bodies are being read; try again shortly") from error
            raise errors.HttpApiError(
                429,
                f"this key has request bodies of {self._held[caller]} bytes in progress, and may have "
                f"{self._per_caller}; send fewer requests at a time",
                {"limit_bytes": self._per_caller},
                {"Retry-After": str(errors.RETRY_SECONDS)},
            ) from error
        try:
            yield
        finally:
            self._held[caller] -= size
            if not self._held[caller]:
                del self._held[caller]
            async with self._freed:
                self._freed.notify_all()

    def _fits(self, caller: str, size: int) -> bool:
        return self._held[caller] + size <= self._per_caller and self._held.total() + size <= self._total
