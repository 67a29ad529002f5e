"""Where requests are counted: in this process, or together with other replicas in a Redis or Valkey.

Called by `api.ratelimit.limiter`. The shared place is never waited for longer than a fifth of a
second: while it is away each replica counts by itself, so that a limit may be exceeded
by as many times as there are replicas, but nobody is turned away for it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import structlog
from limits import RateLimitItem
from limits.aio.storage import RedisStorage
from limits.aio.strategies import FixedWindowRateLimiter
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from api.ratelimit.fixed_window import Windows

PATIENCE = 0.2
"""Seconds that a request waits for the shared place at most."""
PAUSE = 1.0
MAX_PAUSE = 10.0
"""Seconds in which it is not asked after it failed; the first, and what they double up to."""
SAY_EVERY = 60.0
CONNECTIONS = 64
_SCHEMES = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss"}
"""One protocol, whatever the server is called."""
_log = structlog.get_logger("api")
T = TypeVar("T")
Ask = Callable[[], Awaitable[T]]


def check_url(url: str) -> None:
    """Raises ValueError, without the password, where the address is none of a Redis or Valkey."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in _SCHEMES and parts.hostname and parts.port != 0
        database = parts.path.strip("/")
        good = good and (not database or database.isdigit()) and not parts.query and not parts.fragment
    except ValueError:
        good = False
    if not good:
        raise ValueError("must be redis://[user:password@]host[:port][/database], or with rediss or valkey")


class Counter(Protocol):
    """Counts requests in fixed windows."""

    async def hit(self, item: RateLimitItem, who: str) -> tuple[bool, float, int]:
        """Counts one; whether it is within the limit, when the window ends, and how many are left."""
        ...

    async def used_up(self, item: RateLimitItem, who: str) -> tuple[bool, float]:
        """Whether another one would exceed the limit, and when the window ends; counts nothing."""
        ...

    async def close(self) -> None:
        """Closes its connections."""
        ...


class LocalCounter:
    """Counts in this process's memory."""

    def __init__(self) -> None:
        self._windows = Windows()

    async def hit(self, item: RateLimitItem, who: str) -> tuple[bool, float, int]:
        """As `Counter.hit`."""
        count, ends = self._windows.hit((who, item.amount), item.get_expiry())
        return count <= item.amount, ends, item.amount - count

    async def used_up(self, item: RateLimitItem, who: str) -> tuple[bool, float]:
        """As `Counter.used_up`."""
        count, ends = self._windows.look((who, item.amount))
        return count >= item.amount, ends

    async def close(self) -> None:
        """There is nothing to close."""


class SharedCounter:
    """Counts in a Redis, or in this process while that is away."""

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        scheme, rest = url.split("://", 1)
        self._pool = ConnectionPool.from_url(
            f"{_SCHEMES[scheme]}://{rest}",
            socket_timeout=PATIENCE,
            socket_connect_timeout=PATIENCE,
            max_connections=CONNECTIONS,
            retry=Retry(NoBackoff(), 0),
        )
        storage = RedisStorage(
            "async+redis://pool:6379",  # Not used: the pool knows where.
            implementation="redispy",
            key_prefix="crewyard",
            connection_pool=self._pool,  # type: ignore[arg-type]
        )
        self._shared = FixedWindowRateLimiter(storage)
        self._local = LocalCounter()
        self._clock = clock
        self._pause = PAUSE
        self._not_before = float("-inf")
        self._said = float("-inf")
        self._asking: set[asyncio.Task[Any]] = set()
        self._places = asyncio.Semaphore(CONNECTIONS)

    async def hit(self, item: RateLimitItem, who: str) -> tuple[bool, float, int]:
        """As `Counter.hit`."""
        return await self._ask(lambda: _hit(self._shared, item, who), lambda: self._local.hit(item, who))

    async def used_up(self, item: RateLimitItem, who: str) -> tuple[bool, float]:
        """As `Counter.used_up`."""
        return await self._ask(
            lambda: _used_up(self._shared, item, who), lambda: self._local.used_up(item, who)
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._pool.aclose()

    async def _ask(self, shared: Ask[T], local: Ask[T]) -> T:
        if self._clock() < self._not_before:
            return await local()
        # Not cancelled where it takes too long: its own limits end it, and its connection stays in order.
        task = asyncio.ensure_future(self._placed(shared))
        self._asking.add(task)
        task.add_done_callback(self._done)
        await asyncio.wait({task}, timeout=PATIENCE)
        error = task.exception() if task.done() else TimeoutError(f"no answer in {PATIENCE} s")
        if error is None:
            self._pause = PAUSE
            return task.result()
        self._away(error)
        return await local()

    async def _placed(self, shared: Ask[T]) -> T:
        async with self._places:
            return await shared()

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._asking.discard(task)
        if not task.cancelled():
            task.exception()  # Whoever asked may be gone.

    def _away(self, error: BaseException) -> None:
        now = self._clock()
        if now < self._not_before:
            return  # Others that asked at the same time have said it.
        self._not_before = now + self._pause
        self._pause = min(2 * self._pause, MAX_PAUSE)
        if now - self._said >= SAY_EVERY:
            self._said = now
            _log.warning("shared_rate_limit_away", error=f"{type(error).__name__}: {error}"[:300])


async def _hit(windows: FixedWindowRateLimiter, item: RateLimitItem, who: str) -> tuple[bool, float, int]:
    allowed = await windows.hit(item, who)
    reset, left = await windows.get_window_stats(item, who)
    return allowed, reset, left


async def _used_up(windows: FixedWindowRateLimiter, item: RateLimitItem, who: str) -> tuple[bool, float]:
    reset, left = await windows.get_window_stats(item, who)
    return left <= 0, reset
