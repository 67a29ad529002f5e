"""How many requests a key, or an address without one, may make a minute.

Called by `api.gate` once per /v1 request. The counting is the `limits` library's
(fixed windows, in memory: one api replica), its statistics are the headers.
"""

import math
from dataclasses import dataclass

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import FixedWindowRateLimiter

from api import errors

WINDOW_SECONDS = 60


@dataclass(frozen=True)
class Allowance:
    """What is left of a window: `reset` in epoch seconds."""

    limit: int
    remaining: int
    reset: int
    exceeded: bool

    def headers(self) -> dict[str, str]:
        """The three headers of every answer."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset),
        }

    def refusal(self, now: float) -> errors.ApiError:
        """The 429 for a window that is used up."""
        wait = min(max(1, math.ceil(self.reset - now)), WINDOW_SECONDS)
        return errors.ApiError(
            429,
            f"more than {self.limit} requests a minute; try again in {wait} s",
            {"limit": self.limit, "retry_after_seconds": wait},
            {"Retry-After": str(wait)},
        )


class RateLimiter:
    """Counts requests by who makes them."""

    def __init__(self) -> None:
        self._limiter = FixedWindowRateLimiter(MemoryStorage())

    async def count(self, who: str, per_minute: int) -> Allowance:
        """Counts one request of `who` (a key's id or an address) against its window."""
        item = RateLimitItemPerMinute(per_minute)
        allowed = await self._limiter.hit(item, who)
        stats = await self._limiter.get_window_stats(item, who)
        return Allowance(per_minute, max(0, stats.remaining), math.ceil(stats.reset_time), not allowed)
