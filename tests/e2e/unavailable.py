"""Repetition of calls that the API answers with 503, as its own clients do. Called by test beds."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

T = TypeVar("T")
MAX_ATTEMPTS = 20
"""A busy machine may be unable to store anything for half a minute."""


async def repeat_unavailable(
    attempt: Callable[[], Awaitable[T]], head: Callable[[T], tuple[int, Mapping[str, str]]]
) -> T:
    """Return the first response that is not a 503 with Retry-After, or the last one.

    `head` returns status and headers of a response.
    """
    for _ in range(MAX_ATTEMPTS - 1):
        response = await attempt()
        status, headers = head(response)
        if status != 503 or "Retry-After" not in headers:
            return response
        await asyncio.sleep(float(headers["Retry-After"]))
    return await attempt()
