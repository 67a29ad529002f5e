"""What was found out in the last seconds: remembered, and asked only once at a time.

Called by `api.auth.kubernetes`. What was found good and what was found bad are
kept apart, so that a flood of bad ones never drives out the good ones.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """Answers by key, None being a bad one; at most `size` good and as many bad ones are remembered."""

    def __init__(self, seconds: float, size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._size, self._clock = seconds, size, clock
        self._good: OrderedDict[str, tuple[float, T]] = OrderedDict()
        self._bad: OrderedDict[str, tuple[float, None]] = OrderedDict()
        self._asking: dict[str, asyncio.Task[T | None]] = {}

    def known(self, key: str) -> bool:
        """Whether `get` answers without asking anew."""
        return self._remembered(key) is not None or key in self._asking

    def was_good(self, key: str) -> bool:
        """Whether it was found good once, however long ago, as far as that is remembered."""
        return key in self._good

    async def get(self, key: str, ask: Callable[[], Awaitable[T | None]]) -> T | None:
        """The answer remembered, or that of `ask`, which any number of callers at once share.

        A caller that gives up does not end it for the others. Raises what `ask` raises, which is not
        remembered.
        """
        found = self._remembered(key)
        if found is not None:
            return found[1]
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = asyncio.ensure_future(self._ask(key, ask))
            asking.add_done_callback(_seen)
        return await asyncio.shield(asking)

    async def _ask(self, key: str, ask: Callable[[], Awaitable[T | None]]) -> T | None:
        begun = self._clock()
        try:
            answer = await ask()
        finally:
            del self._asking[key]
        # From the question on, not from the answer: what changed in between is known in time.
        if answer is None:
            _put(self._bad, key, (begun, None), self._size)
        else:
            _put(self._good, key, (begun, answer), self._size)
        return answer

    def _remembered(self, key: str) -> tuple[float, T] | tuple[float, None] | None:
        for memory in (self._good, self._bad):
            found = memory.get(key)
            if found is not None and self._clock() - found[0] < self._seconds:
                return found
        return None


def _put(memory: OrderedDict[str, T], key: str, value: T, size: int) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > size:
        memory.popitem(last=False)


def _seen(task: asyncio.Task[T]) -> None:
    """Whoever asked may be gone; a failure that nobody awaits is no news then."""
    if not task.cancelled():
        task.exception()
