"""What several look for at the same time is looked for once, and found by all of them.

Of one key one search runs at a time; whoever asks meanwhile waits for it, or for
the next one where it began too early for what they need to know. Called by
`controller.source.poller`, for the heads of remotes and for commits.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from controller.git.repository import GitProblem

V = TypeVar("V")
NOTHING: Mapping[str, float] = {}


@dataclass(frozen=True)
class Found(Generic[V]):
    """A value, or the problem in its place; `began` and `ended` are the clock's seconds."""

    began: float
    ended: float
    value: V | None = None
    problem: GitProblem | None = None

    def serves(self, asked: float, since: float, lasting: Mapping[str, float] = NOTHING) -> bool:
        """Whether this answers somebody who asked then and needs what is true from `since` on.

        A problem is told to those only who waited for it, but for `lasting`: seconds by reason.
        """
        still = 0.0 if self.problem is None else lasting.get(self.problem.reason, 0.0)
        return self.began >= since and (self.problem is None or self.ended + still >= asked)


class Shared(Generic[V]):
    """The latest findings by key, at most `most` of them. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float], most: int) -> None:
        self._clock = clock
        self._most = most
        self._found: OrderedDict[Hashable, Found[V]] = OrderedDict()
        self._running: dict[Hashable, asyncio.Future[None]] = {}

    async def get(
        self,
        key: Hashable,
        since: float,
        make: Callable[[], Awaitable[V]],
        lasting: Mapping[str, float] = NOTHING,
    ) -> tuple[V, float]:
        """A value that was looked for after `since`, and when its search began. Raises GitProblem."""
        asked = self._clock()
        while True:
            found = self._found.get(key)
            if found is not None and found.serves(asked, since, lasting):
                if found.problem is not None:
                    raise found.problem
                assert found.value is not None
                return found.value, found.began
            running = self._running.get(key)
            if running is not None:
                # Unlike awaiting it, this does not cancel it for the others.
                await asyncio.wait([running])
            else:
                await self._search(key, make)

    async def _search(self, key: Hashable, make: Callable[[], Awaitable[V]]) -> None:
        running = self._running[key] = asyncio.get_running_loop().create_future()
        began = self._clock()
        try:
            value = await make()
            self._keep(key, Found(began, self._clock(), value))
        except GitProblem as problem:
            self._keep(key, Found(began, self._clock(), problem=problem))
        finally:
            # Also where it was cancelled: the next one who waits searches then.
            del self._running[key]
            running.set_result(None)

    def _keep(self, key: Hashable, found: Found[V]) -> None:
        self._found[key] = found
        self._found.move_to_end(key)
        while len(self._found) > self._most:
            self._found.popitem(last=False)
