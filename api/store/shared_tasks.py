"""One task per key, whose result concurrent callers share. Called by caches of the API server."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SharedTasks(Generic[T]):
    """Running tasks by key."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[T]] = {}

    def __contains__(self, key: str) -> bool:
        """Return whether a task of the key runs."""
        return key in self._tasks

    def start(self, key: str, start: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        """Return the running task, or a new one."""
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(start())
            task.add_done_callback(partial(self._end, key))
        return task

    async def run(self, key: str, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the running task, or of a new one. Raises what it raises.

        Cancelling one caller does not cancel the task for the others.
        """
        return await asyncio.shield(self.start(key, start))

    async def wait(self) -> None:
        """Return once all running tasks have ended."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _end(self, key: str, task: asyncio.Task[T]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            # Retrieved, since all callers may have been cancelled.
            task.exception()
