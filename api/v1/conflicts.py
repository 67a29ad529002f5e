"""Repetition of writes that fail because another client changes the object meanwhile.

Called by the routes that read an object and write what follows from it.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kube import errors as kube_errors

MAX_ATTEMPTS = 8
"""The controller writes the status of a Project meanwhile, which changes its version too."""
LONGEST_PAUSE_SECONDS = 0.4
_Result = TypeVar("_Result")


async def repeated(write: Callable[[], Awaitable[_Result]]) -> _Result:
    """Call `write`, which reads the object first, again after a pause while the object changes meanwhile.

    Raises the error of the last attempt.
    """
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return await write()
        except (kube_errors.KubeConflict, kube_errors.AlreadyExists, kube_errors.KubeNotFound):
            # Random, so that the clients do not meet again.
            await asyncio.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))
    return await write()
