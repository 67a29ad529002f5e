"""Request counters: in process memory, or shared by replicas in Redis or Valkey.

Called by `api.ratelimit.limiter`. A request waits at most 0.2 s for Redis. While Redis is
unavailable each replica counts on its own: a limit may then be exceeded by a factor of the
number of replicas, but no request fails because of Redis.
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

from api.ratelimit.fixed_window import FixedWindows

REDIS_TIMEOUT_SECONDS = 0.2
"""Maximum time a request waits for Redis."""
RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 10.0
"""Pause after a failure of Redis: initial value, and the maximum it doubles up to."""
LOG_INTERVAL_SECONDS = 60.0
MAX_CONNECTIONS = 64
_SCHEMES = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss"}
"""Redis and Valkey share one protocol."""
_log = structlog.get_logger("api")
T = TypeVar("T")
CounterCall = Callable[[], Awaitable[T]]


def check_url(url: str) -> None:
    """Check a Redis or Valkey URL. Raises ValueError without the password in its text."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in _SCHEMES and parts.hostname and parts.port != 0
        database = parts.path.strip("/")
        valid = valid and (not database or database.isdigit()) and not parts.query and not parts.fragment
    except ValueError:
        valid = False
    if not valid:
        raise ValueError("must be redis://[user:password@]host[:port][/database], or with rediss or valkey")


class RequestCounter(Protocol):
    """Counts requests in fixed windows."""

    async def hit(self, item: RateLimitItem, who: str) -> tuple[bool, float, int]:
        """Count a request; return whether it is within the limit, the end of the window, what remains."""
        ...

    async def remaining(self, item: RateLimitItem, who: str) -> tuple[float, int]:
        """Return the end of the window and what remains of the limit; count nothing."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class LocalCounter:
    """Counts in process memory."""

    def __init__(self) -> None:
        self._windows = FixedWindows()

    async def hit(self, item: RateLimitItem, who: str) -> tuple[bool, float, int]:
        """Implement `RequestCounter.hit`."""
        count, ends = self._windows.hit((who, item.amount), item.get_expiry())
        return count <= item.amount, ends, item.amount - count

    async def remaining(self, item: RateLimitItem, who: str) -> tuple[float, int]:
        """Implement `RequestCounter.remaining`."""
        count, ends = self._windows.peek((who, item.amount))
        return ends, item.amount - count

    async def close(self) -> None:
        """Do nothing."""


class SharedCounter:
    """Counts in Redis, or in process memory while Redis is unavailable."""

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        scheme, address = url.split("://", 1)
        self._pool = ConnectionPool.from_url(
            f"{_SCHEMES[scheme]}://{address}",
            socket_timeout=REDIS_TIMEOUT_SECONDS,
            socket_connect_timeout=REDIS_TIMEOUT_SECONDS,
            max_connections=MAX_CONNECTIONS,
            retry=Retry(NoBackoff(), 0),
        )
        storage = RedisStorage(
            "async+redis://pool:6379",  # Unused: the pool has the address.
            implementation="redispy",
            key_prefix="crewyard",
            connection_pool=self._pool,  # type: ignore[arg-type]
        )
        self._shared = FixedWindowRateLimiter(storage)
        self._local = LocalCounter()
        self._clock = clock
        self._backoff = RETRY_SECONDS
        self._not_before = float("-inf")
        self._logged_at = float("-inf")
        self._pending: set[asyncio.Task[Any]] = set()
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)

    async def hit(self, item: RateLimitItem, who: str) -> tuple[bool, float, int]:
        """Implement `RequestCounter.hit`."""
        return await self._call(lambda: _hit(self._shared, item, who), lambda: self._local.hit(item, who))

    async def remaining(self, item: RateLimitItem, who: str) -> tuple[float, int]:
        """Implement `RequestCounter.remaining`."""
        return await self._call(
            lambda: _remaining(self._shared, item, who), lambda: self._local.remaining(item, who)
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    async def _call(self, shared: CounterCall[T], local: CounterCall[T]) -> T:
        if self._clock() < self._not_before:
            return await local()
        # Do not cancel a slow call: its own timeout ends it, and its connection stays usable.
        task = asyncio.ensure_future(self._in_slot(shared))
        self._pending.add(task)
        task.add_done_callback(self._done)
        await asyncio.wait({task}, timeout=REDIS_TIMEOUT_SECONDS)
        error = (
            task.exception() if task.done() else TimeoutError(f"no response within {REDIS_TIMEOUT_SECONDS} s")
        )
        if error is None:
            self._backoff = RETRY_SECONDS
            return task.result()
        self._mark_unavailable(error)
        return await local()

    async def _in_slot(self, shared: CounterCall[T]) -> T:
        async with self._slots:
            return await shared()

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._pending.discard(task)
        if not task.cancelled():
            task.exception()  # All callers may have been cancelled.

    def _mark_unavailable(self, error: BaseException) -> None:
        now = self._clock()
        if now < self._not_before:
            return  # A concurrent call has reported this failure already.
        self._not_before = now + self._backoff
        self._backoff = min(2 * self._backoff, MAX_RETRY_SECONDS)
        if now - self._logged_at >= LOG_INTERVAL_SECONDS:
            self._logged_at = now
            _log.warning("shared_rate_limit_away", error=f"{type(error).__name__}: {error}"[:300])


async def _hit(windows: FixedWindowRateLimiter, item: RateLimitItem, who: str) -> tuple[bool, float, int]:
    allowed = await windows.hit(item, who)
    reset, remaining = await windows.get_window_stats(item, who)
    return allowed, reset, remaining


async def _remaining(windows: FixedWindowRateLimiter, item: RateLimitItem, who: str) -> tuple[float, int]:
    reset, remaining = await windows.get_window_stats(item, who)
    return reset, remaining
