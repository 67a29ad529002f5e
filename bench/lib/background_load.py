"""Work that goes on beside a measurement and has no end of its own. Called by `peak` and `rotations`."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any


@contextlib.asynccontextmanager
async def background_task(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Does `work` while the block lasts, and ends it; what it raised is let go."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
