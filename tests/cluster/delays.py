"""Random pauses before and after the calls of a KubeClient, so that other tasks come first.

They show a test or a reconciler that relies on an order which nothing guarantees. Called by the conftest;
`make cluster DELAYS=7` sets the variable to this seed. Each pytest worker has its own sequence.
"""

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable
from typing import Any

VARIABLE = "CREWYARD_TEST_DELAYS"
SHARE_OF_CALLS = 0.3
MAX_PAUSE_SECONDS = 0.5
METHODS = ("get", "list", "create", "patch", "delete")


def delay_calls(client: type, seed: int) -> None:
    """Let a share of the calls of a client's class begin late, and as many end late."""
    chance = random.Random(seed)
    for name in METHODS:
        setattr(client, name, _delayed(getattr(client, name), chance))


def _delayed(method: Callable[..., Awaitable[Any]], chance: random.Random) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(method)
    async def delayed(*arguments: Any, **more: Any) -> Any:
        await _pause(chance)
        try:
            return await method(*arguments, **more)
        finally:
            await _pause(chance)

    return delayed


async def _pause(chance: random.Random) -> None:
    if chance.random() < SHARE_OF_CALLS:
        await asyncio.sleep(chance.random() * MAX_PAUSE_SECONDS)
