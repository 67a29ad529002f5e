"""Random pauses around the calls of a KubeClient and before events of watches, so that others come first.

They show a test or a reconciler that relies on an order which nothing guarantees. Called by the conftest;
`make cluster DELAYS=7` sets the variable to this seed. Each pytest worker has its own sequence.
"""

import asyncio
import contextlib
import functools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from types import ModuleType
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


def delay_watch(client: type, seed: int) -> None:
    """Deliver a share of the events of a client's watches late; their order stays."""
    chance = random.Random(seed)
    watch = client.watch  # type: ignore[attr-defined]

    @functools.wraps(watch)
    async def delayed(*arguments: Any, **more: Any) -> AsyncIterator[Any]:
        async with contextlib.aclosing(watch(*arguments, **more)) as events:
            async for event in events:
                await _pause(chance)
                yield event

    client.watch = delayed  # type: ignore[attr-defined]


def delay_kopf(kopf_watch: ModuleType, seed: int) -> None:
    """Handle a share of Kopf's events late: the events of one object stay in order, those of two may not."""
    chance = random.Random(seed)
    make_handler = kopf_watch._handler

    @functools.wraps(make_handler)
    def delayed(*arguments: Any) -> Callable[..., Awaitable[None]]:
        handle = make_handler(*arguments)

        async def on_event(**event: Any) -> None:
            await _pause(chance)
            await handle(**event)

        return on_event

    kopf_watch._handler = delayed


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
