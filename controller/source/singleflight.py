"""Singleflight: concurrent requests of one key share one fetch.

One fetch per key runs at a time; requests made meanwhile wait for it, or for the next one if it
started too early for them. Called by `controller.source.poller`, for heads of remotes and for
commits.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from controller.git.repository import GitProblem

V = TypeVar("V")
NO_TTLS: Mapping[str, float] = {}


@dataclass(frozen=True)
class FlightResult(Generic[V]):
    """Value or problem; `started_at` and `finished_at` are clock seconds."""

    started_at: float
    finished_at: float
    value: V | None = None
    problem: GitProblem | None = None

    def answers(self, requested_at: float, since: float, problem_ttls: Mapping[str, float] = NO_TTLS) -> bool:
        """Return whether this result answers a request of `requested_at` for the state since `since`.

        A problem answers only requests that waited for it, or within its TTL (seconds by reason).
        """
        ttl = 0.0 if self.problem is None else problem_ttls.get(self.problem.reason, 0.0)
        return self.started_at >= since and (self.problem is None or self.finished_at + ttl >= requested_at)


class SingleFlight(Generic[V]):
    """Latest results by key, at most `max_results`. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float], max_results: int) -> None:
        self._clock = clock
        self._max_results = max_results
        self._results: OrderedDict[Hashable, FlightResult[V]] = OrderedDict()
        self._running: dict[Hashable, asyncio.Future[None]] = {}

    async def get(
        self,
        key: Hashable,
        since: float,
        fetch: Callable[[], Awaitable[V]],
        problem_ttls: Mapping[str, float] = NO_TTLS,
    ) -> tuple[V, float]:
        """Return a value fetched after `since`, and when its fetch started. Raises GitProblem."""
        requested_at = self._clock()
        while True:
            result = self._results.get(key)
            if result is not None and result.answers(requested_at, since, problem_ttls):
                if result.problem is not None:
                    raise result.problem
                assert result.value is not None
                return result.value, result.started_at
            running = self._running.get(key)
            if running is not None:
                # Unlike awaiting the future, this does not cancel it for the others.
                await asyncio.wait([running])
            else:
                await self._fetch(key, fetch)

    async def _fetch(self, key: Hashable, fetch: Callable[[], Awaitable[V]]) -> None:
        running = self._running[key] = asyncio.get_running_loop().create_future()
        began = self._clock()
        try:
            value = await fetch()
            self._store(key, FlightResult(began, self._clock(), value))
        except GitProblem as problem:
            self._store(key, FlightResult(began, self._clock(), problem=problem))
        finally:
            # Also after a cancellation: the next waiting request fetches then.
            del self._running[key]
            running.set_result(None)

    def _store(self, key: Hashable, result: FlightResult[V]) -> None:
        self._results[key] = result
        self._results.move_to_end(key)
        while len(self._results) > self._max_results:
            self._results.popitem(last=False)
